// Documents that fit nowhere, in groups named by their words: proposals for new categories.

import { get, post } from "./api.js";
import { footer, openDialog } from "./dialog.js";
import { $, button, debounce, h, pathText, plural } from "./dom.js";
import { nodeField } from "./picker.js";
import { emit, on, setChosen, state } from "./state.js";

let box;

export async function create() {
  box = h("div", { class: "proposals" });
  $("unsorted").append(
    h("div", { class: "head" }, h("h2", { class: "title" }, "Unsorted")),
    h("p", { class: "soft intro" }, "Documents that fit nowhere, in groups. Accept one and it becomes a category, with these documents as its examples."),
    box,
  );
  on("new-model", () => { if (state.view === "unsorted") read(); });
  on("view", () => { if (state.view === "unsorted") read(); });
  await read();
}

async function read() {
  if (!box.children.length) box.replaceChildren(h("p", { class: "message" }, "Looking for groups …"));
  try {
    const found = await get("/proposals");
    box.replaceChildren(...(found.length ? found.map(card) : [h("p", { class: "message" }, "No group of documents fits nowhere: the tree has a place for all.")]));
  } catch (error) {
    box.replaceChildren(h("p", { class: "message" }, error.message));
  }
}

function card(one) {
  const samples = h("ul", { class: "samples" });
  Promise.all(one.rows.slice(0, 3).map((row) => get(`/documents/${row}`))).then((documents) => {
    samples.replaceChildren(...documents.map((each) => h("li", {}, h("button", { type: "button", class: "sample", onclick: () => { emit("select", each); emit("open-document"); } }, h("span", { class: "id" }, each.id), h("span", { class: "snippet" }, each.text.slice(0, 300))))));
  }).catch(() => {});
  return h("article", { class: "proposal", "aria-label": one.name },
    h("div", { class: "line" }, h("h3", {}, one.name), h("span", { class: "soft" }, plural(one.size, "document")), h("span", { class: "grow" }), h("span", { class: "soft" }, one.parent.length ? `below ${pathText(one.parent)}` : "at the top")),
    h("p", { class: "words" }, ...one.words.slice(0, 10).map((word) => h("span", { class: "word s2" }, word))),
    samples,
    h("div", { class: "line" }, button("Make it a category …", { class: "primary", onclick: () => accept(one) }), button(`Select ${one.rows.length === one.size ? "them" : `the first ${one.rows.length}`}`, { onclick: () => setChosen(one.rows) })));
}

function accept(one) {
  openDialog({ title: "A new category", build: (handle) => {
    const name = h("input", { type: "text", id: "proposal-name", value: one.name, autofocus: true, autocomplete: "off" });
    const where = nodeField({ label: "Below", title: "Below which category?", node: state.taxonomy.find(one.parent) ?? 0, root: true, onchange: () => preview() });
    const said = h("div", { role: "status", class: "said" });
    const given = (previewing) => ({ name: name.value.trim(), parent: state.taxonomy.path(where.node), preview: previewing });
    let asked = 0;
    const preview = async () => {
      asked += 1;
      const own = asked;
      go.disabled = true;
      if (!name.value.trim()) return;
      try {
        const plan = await post(`/proposals/${one.id}/accept`, given(true));
        if (own !== asked) return;
        said.className = "said";
        said.replaceChildren(...plan.said.map((text) => h("p", {}, text)));
        go.disabled = false;
      } catch (error) {
        if (own === asked) fail(error);
      }
    };
    const fail = (error) => {
      said.className = "said bad";
      said.replaceChildren(h("p", {}, error.message));
    };
    name.addEventListener("input", debounce(preview, 150));
    const go = button("Make it", { class: "primary", disabled: true, onclick: async () => {
      go.disabled = true;
      try {
        const result = await post(`/proposals/${one.id}/accept`, given(false));
        handle.close();
        if (result.job) emit("job-started", result.job);
        else emit("model-changed");
      } catch (error) {
        fail(error);
        go.disabled = false;
      }
    } });
    preview();
    return [h("div", { class: "row" }, h("label", { for: "proposal-name" }, "Name"), name), where.element, said, footer(h("span", { class: "grow" }), go)];
  } });
}
