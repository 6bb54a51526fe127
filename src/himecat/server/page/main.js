// The page: model, tree and the first documents are asked for at once; then the server says what changes.

import { createActions, refreshRows } from "./actions.js";
import { client, get, listen } from "./api.js";
import { createBulk } from "./bulk.js";
import { createDocument } from "./document.js";
import { createDocuments, inSight, load } from "./documents.js";
import { $, debounce, h } from "./dom.js";
import { createKeys } from "./keys.js";
import { createLearning } from "./learning.js";
import { createShell } from "./shell.js";
import { emit, on, recall, state } from "./state.js";
import { Taxonomy } from "./taxonomy.js";
import { createTree, showNode } from "./tree.js";

async function readModel() {
  state.model = await get("/model");
  $("model-name").textContent = state.model.name;
  document.title = `${state.model.name} · himecat`;
  emit("model");
}

async function readTree() {
  const { nodes } = await get("/tree");
  const before = state.taxonomy;
  state.taxonomy = new Taxonomy(nodes);
  if (!state.taxonomy.has(state.filters.node)) state.filters = { ...state.filters, node: 0 };
  emit("tree", before);
}

async function readAgain() {
  const { node } = state.filters;
  const path = state.taxonomy.path(node);
  await Promise.all([readModel(), readTree()]);
  // Nodes may have other numbers in the new tree.
  state.filters = { ...state.filters, node: state.taxonomy.find(path) ?? 0 };
  emit("new-model");
  await load({ keep: state.row });
}

const later = debounce(() => readAgain().catch(fail), 60);
const counts = debounce(() => Promise.all([readTree(), readModel()]).catch(fail), 400);

const fail = (error) => emit("problem", error.message);

// After the line was down: a new model is read whole, else only what is in sight may have another answer.
async function missed() {
  const before = state.model;
  await Promise.all([readModel(), readTree()]);
  if (before.model_version !== state.model.model_version || before.tree_version !== state.model.tree_version) later();
  else await refreshRows(inSight());
}

function heard(kind, data) {
  if (kind === "job") emit("job", data);
  else if (kind === "model" || kind === "tree") later();
  else if (kind === "action" && data.by !== client && data.client !== client) {
    if (data.rows.length > 100) later();
    else refreshRows(data.rows).catch(fail).then(counts);
  }
}

function views() {
  const made = new Set();
  const make = async () => {
    if (state.view === "documents" || made.has(state.view)) return;
    made.add(state.view);
    const module = await import(state.view === "map" ? "./map.js" : "./unsorted.js");
    await module.create();
  };
  on("view", () => make().catch(fail));
  make().catch(fail);
  const categories = () => import("./categories.js");
  on("accept-category", async (node) => (await categories()).acceptCategory(node));
  on("category-menu", async (given) => (await categories()).categoryMenu(given));
  on("show-node", showNode);
}

async function start() {
  createTree();
  createDocuments();
  createDocument();
  createActions();
  createBulk();
  createKeys();
  on("model-changed", later);
  on("counts", counts);
  try {
    await Promise.all([readModel(), readTree()]);
  } catch (error) {
    createShell();
    $("documents").replaceChildren(h("div", { class: "message" }, h("p", {}, error.message)));
    return;
  }
  recall();
  createShell();
  createLearning();
  if (state.filters.node) showNode(state.filters.node);
  addEventListener("hashchange", recall);
  addEventListener("popstate", recall);
  views();
  await load();
  document.body.dataset.ready = "1";
  listen(heard, () => missed().catch(fail));
}

start();
