// The list of documents: pages asked for as they come into sight. Its order stays as it was when it was asked for:
// what is answered keeps its place until the list is asked for again.

import { get } from "./api.js";
import { $, bar, button, debounce, h, icon, nowhere, pathParts, pathText, percent, plural, sureness } from "./dom.js";
import { emit, on, setChosen, setFilters, setView, SORTS, state, STATES } from "./state.js";
import { VirtualList } from "./virtual.js";

const HEIGHT = 88;
const PAGE = 60;

let list;
let element;
let pages = new Map();
let asked = new Map();
let index = -1;
let total = 0;
let stop = new AbortController();
// Places in the list of what was answered since it was asked for: the server leaves them out of its count when only open ones are asked for.
let gone = new Set();
let head = {};

export function createDocuments() {
  element = h("div", { role: "listbox", id: "list", class: "list", tabindex: "0", "aria-label": "Documents", "aria-multiselectable": "true" });
  list = new VirtualList(element, HEIGHT, draw);
  list.onwindow = (first, last) => {
    for (let page = Math.floor(first / PAGE); page * PAGE < last; page += 1) need(page);
  };
  element.addEventListener("keydown", onKey);
  element.addEventListener("click", (event) => {
    const row = event.target.closest("[data-index]");
    if (!row) return;
    const to = Number(row.dataset.index);
    if (event.ctrlKey || event.metaKey) toggle(to);
    else if (event.shiftKey) extend(to);
    else {
      select(to);
      emit("open-document");
    }
  });
  head.title = h("h2", { class: "title", id: "list-title" });
  head.total = h("span", { class: "soft total", role: "status" });
  head.accept = button("Accept sure …", { onclick: () => emit("accept-category", state.filters.node) });
  head.edit = button("Edit", { "aria-haspopup": "menu", "aria-expanded": "false", onclick: () => emit("category-menu", { node: state.filters.node, anchor: head.edit }) });
  head.query = h("input", { type: "search", id: "query", placeholder: "Search the texts", "aria-label": "Search the texts", autocomplete: "off", "aria-keyshortcuts": "/" });
  head.query.addEventListener("input", debounce(() => setFilters({ query: head.query.value.trim() }), 60));
  head.query.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === "ArrowDown") { event.preventDefault(); element.focus(); } });
  head.sort = h("select", { id: "sort", "aria-label": "Sort by", onchange: () => setFilters({ sort: head.sort.value }) },
    ...Object.entries(SORTS).map(([value, text]) => h("option", { value }, text)));
  head.states = h("div", { class: "segments", role: "group", "aria-label": "Which documents" },
    ...Object.entries(STATES).map(([value, text]) => h("button", { type: "button", dataset: { state: value }, onclick: () => setFilters({ state: value }) }, text)));
  head.chips = h("div", { class: "chips" });
  head.message = h("div", { class: "message", hidden: true });
  $("documents").append(
    h("div", { class: "head" }, head.title, head.total, h("span", { class: "grow" }), head.accept, head.edit),
    h("div", { class: "filters" }, h("div", { class: "field" }, icon("search"), head.query), head.sort, head.states),
    head.chips, element, head.message,
  );
  on("filters", () => { sayFilters(); load(); });
  on("tree", sayFilters);
  on("answered", redrawRows);
  on("chosen", () => list.redraw());
  sayFilters();
}

function sayFilters() {
  const { filters, taxonomy } = state;
  head.title.replaceChildren(filters.node === 0 || !taxonomy.has(filters.node) ? "All documents" : pathParts(taxonomy.path(filters.node)));
  head.sort.value = filters.sort;
  if (document.activeElement !== head.query) head.query.value = filters.query;
  for (const one of head.states.children) one.setAttribute("aria-pressed", String(one.dataset.state === filters.state));
  const chips = [];
  if (filters.node) chips.push(chip("category", pathText(taxonomy.path(filters.node)), { node: 0 }));
  if (filters.value) chips.push(chip(...split(filters.value), { value: "" }));
  if (filters.query) chips.push(chip("text", filters.query, { query: "" }));
  head.chips.replaceChildren(...chips);
  head.chips.hidden = !chips.length;
}

function split(value) {
  const at = value.indexOf(":");
  return [value.slice(0, at), value.slice(at + 1)];
}

function chip(kind, text, without) {
  return h("button", { type: "button", class: "chip", "aria-label": `Remove the filter ${kind}: ${text}`, onclick: () => setFilters(without) },
    h("span", { class: "kind" }, kind), h("span", { class: "text" }, text), icon("close"));
}

export function queryOf(filters) {
  return { node: filters.node || null, value: filters.value, query: filters.query, sort: filters.sort, state: filters.state };
}

// Asks for the list anew. The document that was shown stays selected where it is at hand, or else the first is.
export async function load({ keep = null } = {}) {
  stop.abort();
  stop = new AbortController();
  const own = stop;
  pages = new Map();
  asked = new Map();
  gone = new Set();
  index = -1;
  list.keep(-1);
  element.setAttribute("aria-busy", "true");
  try {
    const first = await page(0, own.signal);
    if (own !== stop) return;
    total = first.total;
    pages.set(0, first.rows);
    element.scrollTop = 0;
    list.setCount(total);
    say();
    const at = keep === null ? -1 : first.rows.findIndex((one) => one.row === keep);
    if (total) select(at >= 0 ? at : 0);
    else {
      element.removeAttribute("aria-activedescendant");
      emit("select", null);
    }
  } catch (error) {
    if (error.name !== "AbortError") fail(error);
  } finally {
    if (own === stop) element.removeAttribute("aria-busy");
  }
}

function page(number_, signal) {
  const start = number_ * PAGE;
  const before = state.filters.state === "open" ? [...gone].filter((at) => at < start).length : 0;
  return get("/documents", { ...queryOf(state.filters), offset: start - before, limit: PAGE }, signal);
}

function need(which) {
  if (pages.has(which) || asked.has(which) || which * PAGE >= total) return asked.get(which);
  const own = stop;
  const coming = page(which, own.signal).then((answer) => {
    if (own !== stop) return;
    pages.set(which, answer.rows);
    for (let at = which * PAGE; at < which * PAGE + answer.rows.length; at += 1) list.redrawRow(at);
  }).catch((error) => {
    asked.delete(which);
    if (error.name !== "AbortError") fail(error);
  });
  asked.set(which, coming);
  return coming;
}

function fail(error) {
  head.message.hidden = false;
  head.message.replaceChildren(h("p", {}, error.message), button("Try again", { onclick: () => load() }));
}

function say() {
  head.total.textContent = plural(total, "document");
  const { filters } = state;
  head.message.hidden = total > 0;
  const bare = !filters.node && !filters.value && !filters.query;
  const why = filters.sort === "suspect" && bare ? "No label looks wrong." : filters.state === "open" && bare ? "Everything is answered."
    : "No document is like that.";
  head.message.replaceChildren(h("p", {}, why), !bare || filters.state !== "all"
    ? button("Show all documents", { onclick: () => setFilters({ node: 0, value: "", query: "", state: "all", sort: "order" }) }) : "");
  head.accept.disabled = !total;
  head.edit.hidden = state.model === null;
}

export const at = (place) => pages.get(Math.floor(place / PAGE))?.[place % PAGE] ?? null;

export const current = () => at(index);

function draw(place) {
  const one = at(place);
  const common = { role: "option", id: `row-${place}`, dataset: { index: place }, "aria-posinset": place + 1, "aria-setsize": total, "aria-selected": String(place === index || (one && state.chosen.has(one.row))) };
  if (!one) return h("div", { ...common, class: "document waiting", "aria-label": "Loading" }, h("i"), h("i"), h("i"));
  const marks = [place === index && "active", one.answer && "done", state.chosen.has(one.row) && "chosen", one.problem && "failed"].filter(Boolean).join(" ");
  return h("div", { ...common, class: `document ${marks}` },
    h("div", { class: "line" }, h("span", { class: "id" }, one.id), one.title && h("b", { class: "doc-title" }, one.title), h("span", { class: "grow" }),
      one.suspect && h("span", { class: "badge warn" }, "label?"),
      ...(nowhere(one) ? [h("span", { class: "badge warn" }, `fits nowhere ${percent(one.none)}`)] : [bar(one.confidence, sureness(one.confidence)), h("span", { class: "number" }, percent(one.confidence))])),
    h("p", { class: "snippet" }, one.text),
    h("div", { class: "line" }, nowhere(one) && h("span", { class: "soft" }, "if anywhere"), pathParts(one.path), h("span", { class: "grow" }), badge(one.answer)));
}

export function badge(answer) {
  if (!answer) return null;
  const text = { accepted: "accepted", none: "none of these", skipped: "skipped" }[answer.kind] ?? `moved to ${answer.path?.at(-1) ?? ""}`;
  return h("span", { class: `badge ${answer.kind}` }, icon({ accepted: "check", none: "none", skipped: "skip" }[answer.kind] ?? "move"), text);
}

export function select(place, { focus = false } = {}) {
  if (!total) return;
  const before = index;
  index = Math.max(0, Math.min(total - 1, place));
  list.keep(index);
  list.reveal(index);
  list.redrawRow(before);
  list.redrawRow(index);
  element.setAttribute("aria-activedescendant", `row-${index}`);
  if (focus) element.focus();
  const one = current();
  if (one) {
    if (state.row !== one.row || before !== index) emit("select", one);
  } else {
    const wanted = index;
    need(Math.floor(index / PAGE))?.then(() => { if (wanted === index && current()) emit("select", current()); });
  }
}

export const step = (by) => select(index + by);

// The next one that has no answer; the page after is asked for before it is needed.
export function advance() {
  let to = index + 1;
  while (to < total && at(to)?.answer) to += 1;
  need(Math.floor((to + 10) / PAGE));
  if (to < total) select(to);
  else emit("select", current());
  return to < total;
}

// The document of a row, where it is at hand.
export function find(row) {
  for (const [number_, rows] of pages) {
    const found = rows.findIndex((one) => one.row === row);
    if (found >= 0) return [number_ * PAGE + found, rows[found]];
  }
  return [-1, null];
}

export function upcoming(count) {
  return Array.from({ length: count }, (_, by) => at(index + 1 + by)).filter(Boolean);
}

function redrawRows(rows) {
  for (const row of rows) {
    const [place, one] = find(row);
    if (place < 0) continue;
    if (one.answer) gone.add(place);
    else gone.delete(place);
    list.redrawRow(place);
  }
}

function toggle(place) {
  const one = at(place);
  if (!one) return;
  const chosen = new Set(state.chosen);
  if (!chosen.delete(one.row)) chosen.add(one.row);
  setChosen(chosen);
}

function extend(to) {
  const rows = [];
  for (let place = Math.min(index, to); place <= Math.max(index, to); place += 1) if (at(place)) rows.push(at(place).row);
  setChosen([...state.chosen, ...rows]);
  select(to);
}

export function toggleCurrent() {
  if (state.view === "documents" && index >= 0) toggle(index);
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const moves = { ArrowDown: index + 1, ArrowUp: index - 1, PageDown: index + list.page, PageUp: index - list.page, Home: 0, End: total - 1 };
  if (event.key in moves) event.shiftKey ? extend(Math.max(0, Math.min(total - 1, moves[event.key]))) : select(moves[event.key]);
  else if (event.key === " ") toggleCurrent();
  else return;
  event.preventDefault();
}

export function focusSearch() {
  setView("documents");
  head.query.focus();
  head.query.select();
}

export const focusList = () => element.focus();

