// Without scripts nothing is missing but sorting and folding all at once.
"use strict";
for (const table of document.querySelectorAll("table[data-sortable]")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const key = (row, column) => row.cells[column].dataset.value;
  heads.forEach((head, column) => {
    const numeric = head.classList.contains("n");
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const before = head.getAttribute("aria-sort");
      const down = before ? before === "ascending" : numeric;
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const sign = down ? -1 : 1;
      const rows = [...body.rows].sort((a, b) => {
        const x = key(a, column), y = key(b, column);
        if (x === "" || y === "") return (x === "") - (y === "");
        return sign * (numeric ? Number(x) - Number(y) : x.localeCompare(y));
      });
      body.append(...rows);
    });
  });
}
const folds = [...document.querySelectorAll(".tree details")];
for (const button of document.querySelectorAll("[data-tree-tools] button")) {
  const open = Boolean(button.dataset.open);
  button.addEventListener("click", () => folds.forEach((fold) => { fold.open = open; }));
}
for (const tools of document.querySelectorAll("[data-tree-tools], [data-sort-hint]")) tools.hidden = false;
