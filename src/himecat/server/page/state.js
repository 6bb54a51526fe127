// What the parts of the page share, and how they tell each other.

import { Taxonomy } from "./taxonomy.js";

const bus = new EventTarget();

export function emit(name, detail) {
  bus.dispatchEvent(new CustomEvent(name, { detail }));
}

export function on(name, call) {
  bus.addEventListener(name, (event) => call(event.detail));
}

export const SORTS = {
  useful: "Most useful to label next",
  unsure: "Least sure",
  disputed: "Most disputed between siblings",
  suspect: "Probable label errors",
  none: "Least fitting anywhere",
  order: "Order of the file",
};

export const STATES = { open: "Open", done: "Answered", all: "All" };

const DEFAULTS = { node: 0, value: "", query: "", sort: "useful", state: "open" };

export const state = {
  model: null,
  taxonomy: new Taxonomy([]),
  view: "documents",
  filters: { ...DEFAULTS },
  // The document that is shown, and those chosen for one answer together.
  row: null,
  chosen: new Set(),
};

export function setFilters(changes) {
  state.filters = { ...state.filters, ...changes };
  remember();
  emit("filters");
}

export function setView(view) {
  if (state.view === view) return;
  state.view = view;
  remember();
  emit("view");
}

// View and filters are in the address: a reload, a bookmark or the button "back" keep them.
function remember() {
  const search = new URLSearchParams({ view: state.view });
  for (const [name, value] of Object.entries(state.filters)) {
    if (value !== DEFAULTS[name]) search.set(name, value);
  }
  const hash = `#${search}`;
  if (hash !== location.hash) history.pushState(null, "", hash);
}

export function recall() {
  const search = new URLSearchParams(location.hash.slice(1));
  const view = ["documents", "map", "unsorted"].includes(search.get("view")) ? search.get("view") : "documents";
  const filters = { ...DEFAULTS };
  for (const name of ["value", "query"]) filters[name] = search.get(name) ?? "";
  const node = Number(search.get("node") ?? 0);
  if (state.taxonomy.has(node)) filters.node = node;
  if (search.get("sort") in SORTS) filters.sort = search.get("sort");
  if (search.get("state") in STATES) filters.state = search.get("state");
  const same = JSON.stringify(filters) === JSON.stringify(state.filters);
  const sameView = view === state.view;
  state.view = view;
  state.filters = filters;
  if (!sameView) emit("view");
  if (!same) emit("filters");
}

export function setChosen(rows) {
  state.chosen = new Set(rows);
  emit("chosen");
}

// Of an answer, the action that gave it: what is expected to be the last one when the next is sent.
export const actionOf = (answer) => (answer ? answer.action : null);
