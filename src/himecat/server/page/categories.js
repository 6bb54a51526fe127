// What can be done with a category: accept its sure documents, and change the tree. What will happen is said before it is done.

import { client, get, post } from "./api.js";
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
    const some = h("h3", {}, "Some of them");
    const said = h("p", { class: "said bad", hidden: true });
    const go = button("Accept", { class: "primary", autofocus: true });
    let asked = 0;
    let version = null;

    async function preview() {
      asked += 1;
      const own = asked;
      least.textContent = percent(Number(range.value));
      try {
        const found = await post("/actions/accept-category", { client, node, min_confidence: Number(range.value), preview: true });
        if (own !== asked) return;
        version = found.model_version;
        figures.replaceChildren(figure(number(found.count), found.count === 1 ? "document, not yet answered" : "documents, not yet answered"), figure(percent(found.mean_confidence, 1), "mean confidence"));
        sample.replaceChildren(...found.sample.map((one) => h("div", { class: "document-sample" },
          h("div", { class: "line" }, h("span", { class: "id" }, one.id), h("span", {}, pathText(one.path)), h("span", { class: "grow" }), bar(one.confidence, sureness(one.confidence)), h("span", { class: "number" }, percent(one.confidence))), h("p", { class: "snippet soft" }, one.text))));
        go.replaceChildren(`Accept ${plural(found.count, "document")}`);
        go.disabled = !found.count;
        some.hidden = !found.count;
      } catch (error) {
        fail(said, error);
      }
    }

    go.addEventListener("click", async () => {
      go.disabled = true;
      try {
        const done = await post("/actions/accept-category", { client, node, min_confidence: Number(range.value), preview: false, model_version: version });
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
    return [h("div", { class: "row" }, h("label", { for: "least" }, "At least"), range, least), figures, some, sample, said,
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
    let planned = null;
    const preview = async () => {
      asked += 1;
      const own = asked;
      go.disabled = true;
      try {
        planned = await change();
        if (own !== asked || !planned) return;
        const plan = await post("/tree/changes", { changes: [planned], preview: true });
        if (own !== asked) return;
        said.className = "said";
        said.replaceChildren(...plan.said.map((text) => h("p", {}, text)));
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
      said.append(h("p", {}, "Changing the tree …"));
      try {
        const done = await post("/tree/changes", { changes: [planned], preview: false });
        handle.close();
        // A job says itself when it is done.
        if (done.job) emit("job-started", done.job);
        else {
          emit("saved", { said: "The tree is changed." });
          emit("model-changed");
        }
      } catch (error) {
        said.className = "said bad";
        said.replaceChildren(h("p", {}, error.message));
        go.disabled = false;
      }
    };
    go.addEventListener("click", run);
    for (const row of rows) row.addEventListener("keydown", (event) => { if (event.key === "Enter" && event.target.matches("input")) run(); });
    preview();
    return [...rows, said, footer(h("span", { class: "grow" }), button("Cancel", { onclick: () => handle.close() }), go)];
  } });
}

const listed = (text) => text.split(",").map((one) => one.trim()).filter(Boolean);

const idsOf = async (rows) => (await Promise.all(rows.slice(0, 200).map((row) => get(`/documents/${row}`)))).map((one) => one.id);

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
    const [words, wordsRow] = textRow("edit-words", "Keywords", "", changed, "if you like, with commas between");
    const rows = [row, where.element, wordsRow];
    const use = h("input", { type: "checkbox", id: "edit-chosen", checked: state.chosen.size > 0, onchange: changed });
    if (state.chosen.size) rows.push(h("div", { class: "row" }, use, h("label", { for: "edit-chosen" }, `with the ${plural(state.chosen.size, "selected document")} as examples`)));
    return [rows, async () => {
      if (!name.value.trim()) return null;
      const documents = use.checked && state.chosen.size ? await idsOf([...state.chosen]) : [];
      return { op: "add", parent: state.taxonomy.path(where.node), name: name.value.trim(), keywords: listed(words.value), documents };
    }];
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
    return [[where.element], () => (where.node === undefined ? null : { op: "merge", path, into: state.taxonomy.path(where.node) })];
  },
  // Its children get as examples what a search finds among its documents; one that is found for two of them goes to the first.
  split({ node, path, changed }) {
    const children = h("div", { class: "children" });
    const add = () => {
      const place = children.children.length + 1;
      const name = h("input", { type: "text", class: "child-name", "aria-label": `Name of part ${place}`, placeholder: `Part ${place}`, autocomplete: "off", oninput: changed });
      const words = h("input", { type: "text", class: "child-words", "aria-label": `Words of part ${place}`, placeholder: "words in its documents", autocomplete: "off", oninput: changed });
      children.append(h("div", { class: "row child" }, name, words, h("span", { class: "soft number found" })));
    };
    add();
    add();
    const more = button("One more part", { class: "quiet", onclick: add });
    const note = h("p", { class: "soft" }, "Documents of the category in which the words are found become the examples of a part, up to 20 of each.");
    return [[note, children, h("div", {}, more)], async () => {
      const used = new Set();
      const parts = {};
      for (const row of children.children) {
        const name = row.querySelector(".child-name").value.trim();
        const query = row.querySelector(".child-words").value.trim();
        if (!name && !query) continue;
        const found = query ? (await get("/documents", { node, query, limit: 60 })).rows.map((one) => one.id).filter((id) => !used.has(id)).slice(0, 20) : [];
        for (const id of found) used.add(id);
        row.querySelector(".found").textContent = query ? plural(found.length, "example") : "";
        if (!name || !found.length) return null;
        parts[name] = found;
      }
      return Object.keys(parts).length > 1 ? { op: "split", path, children: parts } : null;
    }];
  },
  delete({ path, changed }) {
    if (path.length < 2) return [[], () => ({ op: "delete", path, labels: "drop" })];
    const labels = h("select", { id: "edit-labels", autofocus: true, onchange: changed }, h("option", { value: "parent" }, `go to ${path.at(-2)}`), h("option", { value: "drop" }, "are forgotten"));
    return [[h("div", { class: "row" }, h("label", { for: "edit-labels" }, "Its labels"), labels)], () => ({ op: "delete", path, labels: labels.value })];
  },
};
