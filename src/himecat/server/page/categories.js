// What can be done with a category: accept its sure documents, and change the tree. What will happen is said before it is done.

import { client, post } from "./api.js";
import { footer, menu, openDialog } from "./dialog.js";
import { bar, button, debounce, h, number, pathText, percent, plural, sureness } from "./dom.js";
import { nodeField } from "./picker.js";
import { emit, state } from "./state.js";

export function categoryMenu({ node, anchor, at }) {
  const inner = node !== 0;
  menu(anchor, "Category", [
    { label: "Accept sure documents …", run: () => acceptCategory(node) },
    null,
    { label: inner ? "Add a category below …" : "Add a main category …", run: () => edit("add", node) },
    ...(inner ? [
      { label: "Rename …", run: () => edit("rename", node) },
      { label: "Move …", run: () => edit("move", node) },
      { label: "Merge into another …", run: () => edit("merge", node) },
      { label: "Split …", run: () => edit("split", node) },
      { label: "Delete …", run: () => edit("delete", node) },
    ] : []),
  ], at);
}

export function acceptCategory(node) {
  const { taxonomy } = state;
  openDialog({ title: `Accept sure documents: ${node ? pathText(taxonomy.path(node)) : "all categories"}`, className: "accepting", build: (handle) => {
    const range = h("input", { type: "range", id: "least", min: "0.5", max: "0.99", step: "0.01", value: "0.9" });
    const least = h("output", { for: "least", class: "number" });
    const figures = h("div", { class: "figures", role: "status" });
    const sample = h("div", { class: "samples" });
    const said = h("p", { class: "said bad", hidden: true });
    const go = button("Accept", { class: "primary", autofocus: true });
    let asked = 0;

    async function preview() {
      asked += 1;
      const own = asked;
      least.textContent = percent(Number(range.value));
      try {
        const found = await post("/actions/accept-category", { client, node, min_confidence: Number(range.value), preview: true });
        if (own !== asked) return;
        figures.replaceChildren(figure(number(found.count), found.count === 1 ? "document, not yet answered" : "documents, not yet answered"), figure(percent(found.mean_confidence, 1), "mean confidence"));
        sample.replaceChildren(...found.sample.map((one) => h("div", { class: "document-sample" },
          h("div", { class: "line" }, h("span", { class: "id" }, one.id), h("span", {}, pathText(one.path)), h("span", { class: "grow" }), bar(one.confidence, sureness(one.confidence)), h("span", { class: "number" }, percent(one.confidence))), h("p", { class: "snippet soft" }, one.text))));
        go.replaceChildren(`Accept ${plural(found.count, "document")}`);
        go.disabled = !found.count;
      } catch (error) {
        fail(said, error);
      }
    }

    go.addEventListener("click", async () => {
      go.disabled = true;
      try {
        const done = await post("/actions/accept-category", { client, node, min_confidence: Number(range.value), preview: false });
        handle.close();
        emit("saved", { said: `Accepted ${plural(done.count ?? done.done, "document")}`, undo: true });
        emit("model-changed");
      } catch (error) {
        fail(said, error);
        go.disabled = false;
      }
    });
    range.addEventListener("input", debounce(preview, 120));
    preview();
    return [h("div", { class: "row" }, h("label", { for: "least" }, "At least"), range, least), figures, h("h3", {}, "Among them, the least sure"), sample, said,
      footer(h("span", { class: "soft" }, "Undone as one, with u."), h("span", { class: "grow" }), go)];
  } });
}

const figure = (value, text) => h("div", {}, h("b", {}, value), h("span", { class: "soft" }, text));

function fail(said, error) {
  said.hidden = false;
  said.textContent = error.message;
}

const TITLES = { add: "Add a category", rename: "Rename", move: "Move", merge: "Merge into another", split: "Split", delete: "Delete" };

function edit(op, node) {
  const { taxonomy } = state;
  const path = taxonomy.path(node);
  const below = taxonomy.below(node);
  openDialog({ title: op === "add" ? TITLES.add : `${TITLES[op]}: ${pathText(path)}`, className: "editing", build: (handle) => {
    const said = h("div", { class: "said", role: "status" }, h("p", { class: "soft" }, "Say what, and what happens is said here."));
    const go = button({ add: "Add", delete: "Delete", merge: "Merge", split: "Split" }[op] ?? TITLES[op], { class: "primary", disabled: true });
    const [rows, change] = FORMS[op]({ node, path, below, changed: () => later() });
    let asked = 0;
    const preview = async () => {
      asked += 1;
      const own = asked;
      const wanted = change();
      go.disabled = true;
      if (!wanted) return;
      try {
        const plan = await post("/tree/changes", { changes: [wanted], preview: true });
        if (own !== asked) return;
        said.className = "said";
        said.replaceChildren(...plan.said.map((text) => h("p", {}, text)), h("p", { class: "soft" }, plan.needs_refit ? "The model is fitted anew afterwards, in the background." : "No refit is needed."));
        go.disabled = false;
      } catch (error) {
        if (own !== asked) return;
        said.className = "said bad";
        said.replaceChildren(h("p", {}, error.message));
      }
    };
    const later = debounce(preview, 150);
    const run = async () => {
      if (go.disabled) return;
      go.disabled = true;
      try {
        const done = await post("/tree/changes", { changes: [change()], preview: false });
        handle.close();
        emit("saved", { said: "The tree is changed." });
        if (done.job) emit("job-started", done.job);
        emit("model-changed");
      } catch (error) {
        said.className = "said bad";
        said.replaceChildren(h("p", {}, error.message));
        go.disabled = false;
      }
    };
    go.addEventListener("click", run);
    for (const row of rows) row.addEventListener("keydown", (event) => { if (event.key === "Enter" && event.target.matches("input")) run(); });
    if (change()) preview();
    return [...rows, said, footer(h("span", { class: "grow" }), button("Cancel", { onclick: () => handle.close() }), go)];
  } });
}

function textRow(id, label, value, changed, hint) {
  const input = h("input", { type: "text", id, value, autocomplete: "off", autofocus: true, placeholder: hint ?? "" });
  input.addEventListener("input", changed);
  return [input, h("div", { class: "row" }, h("label", { for: id }, label), input)];
}

// The fields of each change, and the change they come to, or null while something is missing.
const FORMS = {
  add({ node, changed }) {
    const [name, row] = textRow("edit-name", "Name", "", changed);
    const where = nodeField({ label: "Below", title: "Below which category?", node, root: true, onchange: changed });
    return [[row, where.element], () => (name.value.trim() ? { op: "add", path: [...state.taxonomy.path(where.node), name.value.trim()] } : null)];
  },
  rename({ path, changed }) {
    const [name, row] = textRow("edit-name", "New name", path.at(-1), changed);
    return [[row], () => (name.value.trim() && name.value.trim() !== path.at(-1) ? { op: "rename", path, name: name.value.trim() } : null)];
  },
  move({ path, below, changed }) {
    const where = nodeField({ label: "Below", title: "Below which category?", allowed: (one) => !below.has(one), root: true, onchange: changed });
    return [[where.element], () => (where.node === undefined ? null : { op: "move", path, to: state.taxonomy.path(where.node) })];
  },
  merge({ path, below, changed }) {
    const where = nodeField({ label: "Into", title: "Merge into which category?", allowed: (one) => !below.has(one), onchange: changed });
    return [[where.element], () => (where.node === undefined ? null : { op: "merge", path, to: state.taxonomy.path(where.node) })];
  },
  split({ path, changed }) {
    const [names, row] = textRow("edit-names", "New names", "", changed, "two or more, with commas between");
    const list = () => names.value.split(",").map((one) => one.trim()).filter(Boolean);
    return [[row], () => (list().length > 1 ? { op: "split", path, names: list() } : null)];
  },
  delete({ path }) {
    return [[], () => ({ op: "delete", path })];
  },
};
