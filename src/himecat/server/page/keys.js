// Keys that work everywhere but in fields, menus and dialogs, and the overlay that lists them.

import { answer, takeSuggestion } from "./actions.js";
import { isOpen, openDialog } from "./dialog.js";
import { h } from "./dom.js";
import { focusList, focusSearch, step, toggleCurrent } from "./documents.js";
import { emit, setChosen, state } from "./state.js";

const KEYS = [
  ["j", "k", "next or previous document"],
  ["a", "Enter", "accept the place"],
  ["1", "5", "move to that runner-up"],
  ["m", null, "move: type a part of a path"],
  ["n", null, "none of these categories"],
  ["s", null, "skip"],
  ["u", null, "undo your last answer"],
  ["x", "Space", "select for one answer together"],
  ["/", null, "search the texts"],
  ["f", null, "find a category"],
  ["g d", "g m", "documents or map"],
  ["g u", null, "unsorted: proposals for new categories"],
  ["l", null, "learn from my corrections"],
  ["Esc", null, "close, clear the selection, back to the list"],
  ["?", null, "this help"],
];

const SWITCH = "himecat-keys";
let go = false;

const on = () => localStorage.getItem(SWITCH) !== "off";

export function createKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isOpen()) return;
    if (event.key === "Escape") {
      leave(event);
      return;
    }
    if (event.target.closest("input, textarea, select, [contenteditable], [role=menu]")) return;
    if (event.key === "Enter" && !event.target.closest("#list, body:focus")) return;
    if (event.key === " " && event.target !== document.body) return;
    if (!on() && event.key !== "?") return;
    if (press(event)) event.preventDefault();
  });
}

function leave(event) {
  if (event.target.matches?.("input[type=search]") && event.target.value) return;
  if (document.querySelector("body[data-drawer]")) emit("drawer", null);
  else if (event.target.matches?.("input")) focusList();
  else if (state.chosen.size) setChosen([]);
  else focusList();
}

function press(event) {
  const { key } = event;
  if (go) {
    go = false;
    const view = { d: "documents", m: "map", u: "unsorted" }[key];
    if (view) {
      emit("go", view);
      return true;
    }
  }
  if (/^[1-5]$/.test(key)) takeSuggestion(Number(key));
  else if (key === "j") step(1);
  else if (key === "k") step(-1);
  else if (key === "a" || key === "Enter") answer("accept");
  else if (key === "m") answer("move");
  else if (key === "n") answer("none");
  else if (key === "s") answer("skip");
  else if (key === "u") answer("undo");
  else if (key === "x" || key === " ") toggleCurrent();
  else if (key === "/") focusSearch();
  else if (key === "f") emit("find-category");
  else if (key === "g") go = true;
  else if (key === "l") emit("learn");
  else if (key === "?") help();
  else return false;
  return true;
}

export function help() {
  openDialog({
    title: "Keys",
    className: "help",
    build: () => {
      const box = h("input", { type: "checkbox", id: "keys-on", checked: on() });
      box.addEventListener("change", () => localStorage.setItem(SWITCH, box.checked ? "on" : "off"));
      return [
        h("dl", { class: "keys" }, ...KEYS.map(([first, second, text]) => h("div", {},
          h("dt", {}, h("kbd", {}, first), second && [first === "1" ? " – " : " ", h("kbd", {}, second)]), h("dd", {}, text)))),
        h("p", { class: "soft" }, "In the tree: arrows walk and open, Enter filters, F2 edits the category, Shift with letters finds a name."),
        h("p", { class: "row" }, box, h("label", { for: "keys-on" }, "Single keys answer documents")),
      ];
    },
  });
}
