// The bar for documents chosen together, in the list or with the lasso.

import { answer } from "./actions.js";
import { $, button, h, plural } from "./dom.js";
import { on, setChosen, state } from "./state.js";

export function createBulk() {
  on("chosen", draw);
  on("filters", () => { if (state.chosen.size) setChosen([]); });
}

function draw() {
  const box = $("bulk");
  const count = state.chosen.size;
  box.hidden = !count;
  if (!count) return;
  const held = box.contains(document.activeElement);
  box.replaceChildren(
    h("strong", { role: "status" }, `${plural(count, "document")} selected`),
    button("Move to …", { class: "primary", onclick: () => answer("move") }, "move"),
    button("Accept", { onclick: () => answer("accept") }, "check"),
    button("None of these", { onclick: () => answer("none") }, "none"),
    button("Clear", { class: "quiet", onclick: () => setChosen([]) }, "close"),
  );
  if (held) box.querySelector("button").focus();
}
