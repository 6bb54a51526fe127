// Type-ahead over all paths of the tree, in a dialog: a field, and a list that the arrows walk.

import { openDialog } from "./dialog.js";
import { h, icon, number, pathParts, pathText, percent } from "./dom.js";
import { state } from "./state.js";

const SHOWN = 60;
let serial = 0;

// Resolves to a node, or undefined where the dialog was left. `suggestions`: [{path, confidence}] shown before anything is typed.
export function pickNode({ title, suggestions = [], allowed = () => true, root = false, note = "" }) {
  return new Promise((resolve) => {
    openDialog({ title, className: "picker", build: (handle) => build(handle, { suggestions, allowed, root, note }), done: resolve });
  });
}

function build(handle, { suggestions, allowed, root, note }) {
  const { taxonomy } = state;
  let found = [];
  let active = 0;
  const list = h("div", { role: "listbox", id: "picker-list", class: "picks", "aria-label": "Categories" });
  const field = h("input", {
    type: "text", autofocus: true, role: "combobox", "aria-expanded": "true", "aria-controls": "picker-list", "aria-autocomplete": "list",
    autocomplete: "off", spellcheck: "false", "aria-label": "Category", placeholder: "Type a part of a name or of a path",
  });
  const count = h("p", { class: "soft count", role: "status" });

  function options() {
    const typed = field.value.trim();
    if (typed) return taxonomy.search(typed, { leavesFirst: true }).filter(allowed).map((node) => ({ node }));
    const first = suggestions.map((one) => ({ node: taxonomy.find(one.path), confidence: one.confidence })).filter((one) => one.node !== undefined && allowed(one.node));
    const known = new Set(first.map((one) => one.node));
    const rest = [...taxonomy.nodes.keys()].filter((node) => node !== 0 && !known.has(node) && allowed(node)).map((node) => ({ node }));
    return [...(root ? [{ node: 0 }] : []), ...first, ...rest];
  }

  function show() {
    list.replaceChildren(...found.slice(0, SHOWN).map((one, index) => {
      const digit = !field.value.trim() && one.confidence !== undefined && index < 5 ? h("kbd", { "aria-hidden": "true" }, String(index + 1)) : null;
      return h("div", {
        role: "option", id: `pick-${index}`, "aria-selected": String(index === active), class: "pick",
        onclick: () => handle.close(one.node),
      }, digit, one.node === 0 ? h("span", { class: "path" }, "at the top, beside the main categories") : pathParts(taxonomy.path(one.node)),
      one.confidence !== undefined && h("span", { class: "number" }, percent(one.confidence)));
    }));
    if (found.length) field.setAttribute("aria-activedescendant", `pick-${active}`);
    else field.removeAttribute("aria-activedescendant");
    count.textContent = found.length ? `${number(found.length)} of ${number(taxonomy.nodes.size - 1)} categories` : "No category has that in its path.";
    list.children[active]?.scrollIntoView({ block: "nearest" });
  }

  function refresh() {
    found = options();
    active = 0;
    show();
  }

  field.addEventListener("input", refresh);
  field.addEventListener("keydown", (event) => {
    const most = Math.min(found.length, SHOWN) - 1;
    const to = { ArrowDown: active + 1, ArrowUp: active - 1, PageDown: active + 8, PageUp: active - 8 }[event.key];
    if (to !== undefined) {
      active = Math.max(0, Math.min(most, to));
      show();
    } else if (event.key === "Enter" && found[active]) {
      handle.close(found[active].node);
    } else if (/^[1-5]$/.test(event.key) && !field.value && found[event.key - 1]?.confidence !== undefined) {
      handle.close(found[event.key - 1].node);
    } else return;
    event.preventDefault();
  });
  refresh();
  return [h("div", { class: "field" }, icon("search"), field), note && h("p", { class: "soft" }, note), list, count].filter(Boolean);
}

// A button that shows a node and lets another be picked: the field "where" of a form.
export function nodeField({ label, title, node, allowed, root, onchange }) {
  let chosen = node;
  serial += 1;
  const text = h("span", { id: `chosen-${serial}` });
  const name = h("span", { class: "label", id: `chosen-label-${serial}` }, label);
  const say = () => { text.textContent = chosen === undefined ? "Choose …" : chosen === 0 ? "at the top" : pathText(state.taxonomy.path(chosen)); };
  say();
  const control = h("button", {
    type: "button", class: "choose", "aria-labelledby": `${name.id} ${text.id}`,
    onclick: async () => {
      const picked = await pickNode({ title: title ?? label, allowed, root });
      control.focus();
      if (picked === undefined) return;
      chosen = picked;
      say();
      onchange?.(chosen);
    },
  }, text, icon("down"));
  return { element: h("div", { class: "row" }, name, control), get node() { return chosen; } };
}
