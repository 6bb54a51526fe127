// The tree of categories: virtual rows, search, and what a click or a key does. Roles and keys are those of the ARIA pattern.

import { $, bar, button, h, icon, number, percent, plural, sureness } from "./dom.js";
import { emit, on, setFilters, setView, state } from "./state.js";
import { VirtualList } from "./virtual.js";

const HEIGHT = 28;

let list;
let rows = [];
let expanded = new Set([0]);
let active = 0;
let field;
let found = null;
let foot;

export function createTree() {
  field = h("input", { type: "search", id: "tree-search", placeholder: "Find a category", "aria-label": "Find a category", autocomplete: "off" });
  field.addEventListener("input", () => search(field.value));
  field.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || (event.key === "Enter" && rows.length)) {
      event.preventDefault();
      const hit = found ? rows.findIndex((node) => found.has(node)) : 0;
      setActive(Math.max(0, hit));
      tree.focus();
      if (event.key === "Enter") choose(rows[active]);
    }
  });
  const tree = h("div", { role: "tree", id: "tree", class: "tree", tabindex: "0", "aria-label": "Categories" });
  list = new VirtualList(tree, HEIGHT, draw);
  list.spacer.setAttribute("role", "presentation");
  tree.addEventListener("keydown", onKey);
  tree.addEventListener("click", onClick);
  tree.addEventListener("contextmenu", (event) => {
    const row = event.target.closest("[data-index]");
    if (!row) return;
    event.preventDefault();
    setActive(Number(row.dataset.index));
    emit("category-menu", { node: rows[active], anchor: tree, at: [event.clientX, event.clientY] });
  });
  // Not for the mouse: the row under it would run away from the click.
  tree.addEventListener("focus", () => { if (tree.matches(":focus-visible")) list.reveal(active); });
  foot = h("div", { class: "foot" });
  const close = button("", { class: "icon narrow", "aria-label": "Hide the categories", onclick: () => emit("drawer", null) }, "close");
  $("tree-pane").append(
    h("div", { class: "bar-of-pane" }, h("div", { class: "field" }, icon("search"), field), close),
    h("div", { class: "columns", "aria-hidden": "true" }, h("span", {}, "Category"), h("span", { title: "Documents placed there or below" }, "Docs"),
      h("span", { title: "Mean confidence" }, "Conf."), h("span", { title: "Accuracy estimated from labelled documents" }, "Acc.")),
    tree, foot,
  );
  on("tree", refresh);
  on("filters", () => {
    const index = rows.indexOf(state.filters.node);
    if (index >= 0) setActive(index);
    list.redraw();
  });
  on("model", sayAccuracy);
}

function sayAccuracy() {
  const { model } = state;
  const levels = (model.accuracy ?? []).map((one) => h("li", { title: `between ${percent(one.low, 1)} and ${percent(one.high, 1)}` },
    h("span", {}, `Level ${one.level}`), bar(one.estimate), h("span", { class: "number" }, percent(one.estimate, 1))));
  foot.replaceChildren(
    h("p", {}, `${plural(model.documents, "document")}, ${number(model.labelled)} labelled`),
    levels.length ? h("div", {}, h("p", { class: "soft" }, "Estimated accuracy"), h("ul", { class: "levels" }, ...levels))
      : h("p", { class: "soft" }, "Too few labels for an estimate of accuracy."),
    model.source === "kept words" ? h("p", { class: "soft" }, "Texts are the words kept with the model: no punctuation. Start with --documents to read them whole.") : "",
  );
}

// Nodes may have other numbers in a new tree: what was open is found by its path.
function refresh(before) {
  expanded = new Set([0, ...[...expanded].map((node) => state.taxonomy.find(before.path(node)))].filter((node) => node !== undefined));
  if (expanded.size <= 1 && state.taxonomy.nodes.size < 60) for (const node of state.taxonomy.children.keys()) expanded.add(node);
  if (field.value) search(field.value);
  else flatten();
}

// The nodes that are shown, top down.
function flatten() {
  const { taxonomy } = state;
  const before = rows[active];
  rows = [];
  if (taxonomy.nodes.size) {
    const shown = found ? new Set([0, ...[...found].flatMap((node) => [node, ...taxonomy.ancestors(node)])]) : null;
    const open = [0];
    while (open.length) {
      const node = open.pop();
      rows.push(node);
      if (!shown && !expanded.has(node)) continue;
      const children = taxonomy.childrenOf(node).filter((child) => !shown || shown.has(child));
      for (let index = children.length - 1; index >= 0; index -= 1) open.push(children[index]);
    }
  }
  active = Math.max(0, rows.indexOf(before));
  list.keep(active);
  list.setCount(rows.length);
  pointTo();
}

function search(text) {
  found = text.trim() ? new Set(state.taxonomy.search(text)) : null;
  flatten();
  list.element.scrollTop = 0;
}

function pointTo() {
  if (rows.length) list.element.setAttribute("aria-activedescendant", `node-${rows[active]}`);
}

function setActive(index) {
  const before = active;
  active = Math.max(0, Math.min(rows.length - 1, index));
  list.keep(active);
  list.reveal(active);
  list.redrawRow(before);
  list.redrawRow(active);
  pointTo();
}

function draw(index) {
  const { taxonomy } = state;
  const one = taxonomy.get(rows[index]);
  const children = taxonomy.childrenOf(one.node);
  const siblings = one.node === 0 ? [0] : taxonomy.childrenOf(one.parent);
  const open = found !== null || expanded.has(one.node);
  const name = one.node === 0 ? "All documents" : one.name;
  const said = [name, plural(one.count, "document"), `mean confidence ${percent(one.confidence)}`, `estimated accuracy ${percent(one.accuracy)}`];
  return h("div", {
    role: "treeitem", id: `node-${one.node}`, class: `node${index === active ? " active" : ""}${found && !found.has(one.node) ? " faint" : ""}`,
    "aria-level": one.depth + 1, "aria-setsize": siblings.length, "aria-posinset": siblings.indexOf(one.node) + 1,
    "aria-expanded": children.length ? String(open) : null, "aria-selected": String(one.node === state.filters.node), "aria-label": said.join(", "),
    dataset: { index },
  },
  h("span", { class: "name", style: { paddingLeft: `${Math.min(one.depth, 8) * 11}px` } },
    h("span", { class: `twist${open ? " open" : ""}`, dataset: { twist: "1" } }, children.length ? icon("right") : null), h("span", { class: "text", title: name }, name)),
  h("span", { class: "number" }, number(one.count)),
  h("span", { class: `number ${one.confidence === null ? "" : sureness(one.confidence)}` }, percent(one.confidence)),
  h("span", { class: "number soft" }, percent(one.accuracy)));
}

function toggle(node, open = !expanded.has(node)) {
  if (!state.taxonomy.childrenOf(node).length || found) return;
  if (open) expanded.add(node);
  else expanded.delete(node);
  flatten();
}

function choose(node) {
  if (node === undefined) return;
  if (state.view === "unsorted") setView("documents");
  setFilters({ node });
  emit("drawer", null);
}

function onClick(event) {
  const row = event.target.closest("[data-index]");
  if (!row) return;
  const index = Number(row.dataset.index);
  setActive(index);
  if (event.target.closest("[data-twist]") && state.taxonomy.childrenOf(rows[index]).length) toggle(rows[index]);
  else choose(rows[index]);
}

let typed = "";
let typedAt = 0;

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const node = rows[active];
  const open = found !== null || expanded.has(node);
  const moves = { ArrowDown: active + 1, ArrowUp: active - 1, Home: 0, End: rows.length - 1, PageDown: active + list.page, PageUp: active - list.page };
  if (event.key in moves) setActive(moves[event.key]);
  else if (event.key === "ArrowRight" && state.taxonomy.childrenOf(node).length) open ? setActive(active + 1) : toggle(node, true);
  else if (event.key === "ArrowLeft") open && !found && state.taxonomy.childrenOf(node).length ? toggle(node, false) : setActive(Math.max(0, rows.indexOf(state.taxonomy.get(node).parent)));
  else if (event.key === "Enter" || event.key === " ") choose(node);
  else if (event.key === "*") {
    for (const sibling of state.taxonomy.childrenOf(state.taxonomy.get(node).parent)) expanded.add(sibling);
    flatten();
  } else if (event.key === "F2" || event.key === "ContextMenu" || (event.key === "F10" && event.shiftKey)) {
    const box = $(`node-${node}`).getBoundingClientRect();
    emit("category-menu", { node, anchor: list.element, at: [box.left + 40, box.bottom] });
  } else if (event.shiftKey && event.key.length === 1 && /\p{L}/u.test(event.key)) {
    // Type-ahead needs the shift key here: single letters are the answers to documents.
    typed = event.timeStamp - typedAt > 800 ? event.key : typed + event.key;
    typedAt = event.timeStamp;
    const hit = rows.findIndex((one, index) => index > (typed.length > 1 ? active - 1 : active) && state.taxonomy.get(one).name.toLowerCase().startsWith(typed.toLowerCase()));
    if (hit >= 0) setActive(hit);
  } else return;
  event.preventDefault();
  event.stopPropagation();
}

// Shows a node: opens what is above it.
export function showNode(node) {
  for (const above of state.taxonomy.ancestors(node)) expanded.add(above);
  if (field.value) {
    field.value = "";
    found = null;
  }
  flatten();
  const index = rows.indexOf(node);
  if (index >= 0) setActive(index);
}
