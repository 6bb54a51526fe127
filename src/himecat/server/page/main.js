// The page: model, tree and the first documents are asked for at once; then the server says what changes.

import { createActions, refreshRows } from "./actions.js";
import { client, get, listen } from "./api.js";
import { createBulk } from "./bulk.js";
import { createDocument } from "./document.js";
import { createDocuments, load } from "./documents.js";
import { $, debounce, h } from "./dom.js";
import { createKeys } from "./keys.js";
import { createLearning } from "./learning.js";
import { createShell } from "./shell.js";
import { emit, on, recall, state } from "./state.js";
import { Taxonomy } from "./taxonomy.js";
import { createTree, showNode } from "./tree.js";

// So many changes are better read anew.
const MANY = 100;

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

// The last action that was heard of.
let last = 0;

// When the line is up, at first or again: what has happened meanwhile is asked for.
async function catchUp() {
  const [now, actions] = await Promise.all([get("/model"), get("/actions", { since: last })]);
  const rows = actions.filter((one) => one.by !== client).flatMap((one) => one.rows);
  last = Math.max(last, now.last_action);
  const { model_version: model, tree_version: tree } = state.model;
  if (now.model_version !== model || now.tree_version !== tree || actions.length >= MANY || rows.length > MANY) later();
  else if (rows.length) refreshRows(rows).catch(fail).then(counts);
}

function heard(kind, data) {
  if (kind === "action") last = Math.max(last, data.id);
  if (kind === "job") emit("job", data);
  else if (kind === "model" || kind === "tree") later();
  else if (kind === "action" && data.by !== client && data.client !== client) {
    if (data.rows.length > MANY) later();
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
  last = state.model.last_action;
  recall();
  createShell();
  createLearning();
  if (state.filters.node) showNode(state.filters.node);
  addEventListener("hashchange", recall);
  addEventListener("popstate", recall);
  views();
  await load();
  document.body.dataset.ready = "1";
  listen(heard, () => catchUp().catch(fail));
}

start();
