// One document: where it is placed and how surely, what else it could be, and why, in its own words.

import { get } from "./api.js";
import { $, bar, button, h, icon, nowhere, pathParts, pathText, percent, sureness } from "./dom.js";
import { badge, upcoming } from "./documents.js";
import { emit, on, setFilters, setView, state } from "./state.js";

let pane;
let shown = null;
let explained = null;
let coming = null;
let stop = new AbortController();
const known = new Map();
const KNOWN = 30;
const FAINT = 0.2;

export function createDocument() {
  pane = $("document-pane");
  empty();
  on("select", show);
  on("answered", (rows) => {
    if (!shown) return;
    for (const row of rows) known.delete(row);
    if (rows.includes(shown.row)) reload();
  });
  on("conflict", () => { if (shown) draw(); });
  on("new-model", () => {
    known.clear();
    if (shown) reload();
  });
}

function empty() {
  pane.replaceChildren(h("div", { class: "message" }, h("p", {}, "No document is selected.")));
}

async function fetchWhole(row, path, signal) {
  if (!path && known.has(row)) return known.get(row);
  const whole = await get(`/documents/${row}`, { path: path ?? [] }, signal);
  if (!path) {
    known.set(row, whole);
    if (known.size > KNOWN) known.delete(known.keys().next().value);
  }
  return whole;
}

// What the list knows is shown at once, the rest when it comes.
function show(one) {
  const drawn = shown?.row;
  shown = one;
  state.row = one?.row ?? null;
  explained = null;
  if (!one) {
    coming = null;
    empty();
    return;
  }
  const ready = known.get(one.row);
  if (ready) {
    shown = { ...ready, ...fresh(one) };
    coming = Promise.resolve(shown);
    draw(drawn !== one.row);
    prefetch();
    return;
  }
  draw(drawn !== one.row);
  reload();
}

// The list hears first of an answer.
const fresh = (one) => ({ answer: one.answer });

function reload() {
  stop.abort();
  stop = new AbortController();
  const row = shown.row;
  const own = stop;
  coming = fetchWhole(row, explained, own.signal).then((whole) => {
    if (shown?.row !== row || own !== stop) return shown;
    shown = whole;
    draw(false);
    prefetch();
    return whole;
  });
  coming.catch((error) => { if (error.name !== "AbortError") emit("problem", error.message); });
}

function prefetch() {
  for (const one of upcoming(2)) if (!known.has(one.row)) fetchWhole(one.row, null).catch(() => {});
}

// The whole document that is shown, when it has come.
export async function whole() {
  try {
    await coming;
  } catch {
    return null;
  }
  return shown;
}

export const shownDocument = () => shown;

export function setConflict(row, conflict) {
  conflicts.set(row, conflict);
  emit("conflict");
}

const conflicts = new Map();

export const clearConflict = (row) => conflicts.delete(row);

function draw(anew = true) {
  const one = shown;
  pane.dataset.row = one.row;
  const top = anew ? 0 : pane.querySelector(".scroll")?.scrollTop ?? 0;
  const hadFocus = pane.contains(document.activeElement) ? document.activeElement.dataset.focus : null;
  const scroll = h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "The document" },
    conflictBox(one), suspectBox(one), placement(one), runnersUp(one), chips(one), reading(one));
  pane.replaceChildren(
    h("div", { class: "bar-of-pane" },
      button("", { class: "icon narrow", "aria-label": "Back to the list", onclick: () => emit("drawer", null) }, "back"),
      h("h2", { class: "id", title: one.id }, one.title ?? one.id), h("span", { class: "grow" }), badge(one.answer)),
    h("div", { class: "answers", role: "toolbar", "aria-label": "Answer" },
      answer("accept", "Accept", "a", "check", "primary"), answer("move", "Move", "m", "move"), answer("none", "None", "n", "none"),
      answer("skip", "Skip", "s", "skip"), answer("undo", "Undo", "u", "undo")),
    scroll,
  );
  scroll.scrollTop = top;
  if (hadFocus) pane.querySelector(`[data-focus="${hadFocus}"]`)?.focus();
}

function answer(kind, label, key, name, className = "") {
  return h("button", { type: "button", class: className, "aria-keyshortcuts": key, dataset: { focus: kind }, onclick: () => emit("answer", kind) },
    icon(name), h("span", {}, label), h("kbd", { "aria-hidden": "true" }, key));
}

function conflictBox(one) {
  const conflict = conflicts.get(one.row);
  if (!conflict) return null;
  return h("div", { class: "notice warn", role: "alert" }, icon("alert"), h("div", {},
    h("p", {}, conflict.said), conflict.answer && h("p", {}, "The answer there is now: ", h("b", {}, conflict.answer.path ? pathText(conflict.answer.path) : "none of these"), "."),
    h("p", { class: "buttons" }, button("Keep it", { dataset: { focus: "keep" }, onclick: () => { conflicts.delete(one.row); draw(false); } }),
      button(`Replace it by ${conflict.mine}`, { dataset: { focus: "replace" }, onclick: () => { conflicts.delete(one.row); conflict.again(); } }))));
}

function suspectBox(one) {
  if (!one.suspect) return null;
  return h("div", { class: "notice" }, icon("alert"), h("div", {}, h("p", {}, "It is labelled ", h("b", {}, pathText(one.label)), "; the model would rather say ", h("b", {}, pathText(one.suspect)), ".")));
}

function placement(one) {
  const path = one.path.length ? one.path : ["none of these"];
  const levels = path.map((name, level) => h("li", {},
    h("span", { class: "text" }, name), bar(one.levels?.[level], sureness(one.levels?.[level] ?? 0)), h("span", { class: "number" }, percent(one.levels?.[level]))));
  const away = nowhere(one);
  return h("section", { class: "block" },
    away && h("p", { class: "nowhere" }, icon("none"), h("span", {}, "It probably fits nowhere: "), h("b", {}, percent(one.none))),
    h("h3", {}, away ? "If anywhere" : "Placed in"), h("ol", { class: "placement" }, ...levels),
    h("p", { class: "soft small" }, !away && one.none !== null && one.none !== undefined ? `Fits nowhere: ${percent(one.none)}` : "", one.label && !one.suspect ? ` · labelled before: ${pathText(one.label)}` : ""));
}

function runnersUp(one) {
  if (!one.alternatives) return h("section", { class: "block" }, h("h3", {}, "Or rather"), h("p", { class: "soft" }, "…"));
  const own = explained ?? one.path;
  const same = (path) => path.join("\u0000") === own.join("\u0000");
  return h("section", { class: "block" }, h("h3", {}, "Or rather"), h("ol", { class: "runners" }, ...one.alternatives.slice(0, 5).map((other, place) => h("li", {},
    h("button", { type: "button", class: "runner", "aria-keyshortcuts": String(place + 1), dataset: { focus: `runner-${place}` }, onclick: () => emit("answer", { move: other.path }) },
      h("kbd", { "aria-hidden": "true" }, String(place + 1)), pathParts(other.path), h("span", { class: "grow" }), h("span", { class: "number" }, percent(other.confidence))),
    h("button", { type: "button", class: "quiet", "aria-pressed": String(same(other.path)), "aria-label": `Why ${pathText(other.path)}?`, dataset: { focus: `why-${place}` }, onclick: () => explain(same(other.path) ? null : other.path) }, "why?")))));
}

function explain(path) {
  explained = path;
  reload();
}

function chips(one) {
  const shares = new Map((one.why?.metadata ?? []).map((each) => [`${each.type}:${each.value}`, each.share]));
  const rows = Object.entries(one.metadata ?? {}).filter(([, values]) => values.length).map(([type, values]) => h("div", { class: "meta" }, h("span", { class: "soft" }, type),
    ...values.map((value) => {
      const share = shares.get(`${type}:${value}`);
      return h("button", { type: "button", class: "chip", "aria-label": `All documents with ${type} ${value}`, onclick: () => { setView("documents"); emit("drawer", null); setFilters({ value: `${type}:${value}`, node: 0, query: "", state: "all" }); } },
        h("span", { class: "text" }, value), share ? h("span", { class: "share", title: "its share in the placement" }, percent(share)) : "");
    })));
  return rows.length ? h("section", { class: "block" }, h("h3", {}, "Metadata"), ...rows) : null;
}

function reading(one) {
  // A text in which every word is marked says nothing: those that hardly count stay as they are.
  const most = Math.max(...(one.why?.words ?? []).map((each) => each.share), 1e-9);
  const words = (one.why?.words ?? []).filter((each) => each.share > FAINT * most);
  const about = explained ? [h("h3", {}, "Why ", h("b", {}, pathText(explained)), "?"), button("Back to its own place", { class: "quiet", onclick: () => explain(null) })] : [h("h3", {}, "Why")];
  const list = words.slice(0, 8).map((each) => h("li", {}, h("span", { class: `word s${strength(each.share / most)}` }, each.word), h("span", { class: "number soft" }, percent(each.share))));
  return h("section", { class: "block" }, h("div", { class: "line" }, ...about),
    one.why ? list.length ? h("ul", { class: "words", "aria-label": "Words that pulled it there, with their share" }, ...list) : h("p", { class: "soft" }, "No word of the text speaks for it.") : null,
    h("div", { class: "text-of-document", lang: "" }, ...marked(one.text, words, most)));
}

const strength = (share) => Math.max(1, Math.min(5, Math.ceil(share * 5)));

// The text with the words that speak for the place marked, the strongest darkest.
function marked(text, words, most) {
  const spans = words.flatMap((each) => each.spans.map(([start, end]) => [start, end, each])).sort((a, b) => a[0] - b[0] || b[1] - a[1]);
  const parts = [];
  let done = 0;
  for (const [start, end, each] of spans) {
    if (start < done || end > text.length) continue;
    if (start > done) parts.push(text.slice(done, start));
    parts.push(h("mark", { class: `s${strength(each.share / most)}`, title: `${each.word}: ${percent(each.share)}` }, text.slice(start, end)));
    done = end;
  }
  parts.push(text.slice(done));
  return parts;
}
