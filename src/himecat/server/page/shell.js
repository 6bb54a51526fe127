// What is around the views: theme, drawers of narrow windows, the line that says what was saved, the menu of data.

import { undoButton } from "./actions.js";
import { menu } from "./dialog.js";
import { $, h, icon } from "./dom.js";
import { focusList } from "./documents.js";
import { canGoBack, goBack } from "./learning.js";
import { help } from "./keys.js";
import { emit, on, setView, state } from "./state.js";

const narrow = matchMedia("(max-width: 800px)");

export function createShell() {
  $("open-tree").append(icon("menu"));
  $("help").append(icon("help"));
  $("help").addEventListener("click", help);
  $("open-tree").addEventListener("click", () => emit("drawer", "tree-pane"));
  $("scrim").addEventListener("click", () => emit("drawer", null));
  $("data").append(icon("down"));
  $("data").addEventListener("click", dataMenu);
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    setView("documents");
    focusList();
  });
  for (const link of document.querySelectorAll("[data-view]")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      setView(link.dataset.view);
    });
  }
  on("go", setView);
  on("view", showView);
  on("drawer", drawer);
  on("open-document", () => { if (narrow.matches) drawer("document-pane"); });
  on("find-category", () => {
    if (narrow.matches) drawer("tree-pane");
    $("tree-search").focus();
  });
  narrow.addEventListener("change", () => drawer(null));
  createTheme();
  createStatus();
  showView();
}

function showView() {
  for (const view of ["documents", "map", "unsorted"]) $(view).hidden = state.view !== view;
  for (const link of document.querySelectorAll("[data-view]")) {
    if (link.dataset.view === state.view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

// In a narrow window the tree and the document lie over the list; the rest cannot be reached meanwhile.
let opener = null;

function drawer(name) {
  const open = narrow.matches ? name : null;
  const before = document.body.dataset.drawer;
  if ((before ?? null) === open) return;
  if (open) document.body.dataset.drawer = open;
  else delete document.body.dataset.drawer;
  $("scrim").hidden = !open;
  for (const part of [document.querySelector("header.top"), $("middle"), $("tree-pane"), $("document-pane")]) {
    part.inert = open !== null && part.id !== open;
  }
  $("open-tree").setAttribute("aria-expanded", String(open === "tree-pane"));
  if (open) {
    if (!before) opener = document.activeElement;
    $(open).querySelector("button, input")?.focus();
  } else {
    (opener?.isConnected ? opener : $("list")).focus();
    opener = null;
  }
}

const THEMES = ["auto", "light", "dark"];

function createTheme() {
  const control = $("theme");
  const set = (theme) => {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    control.replaceChildren(icon({ auto: "auto", light: "sun", dark: "moon" }[theme]));
    control.setAttribute("aria-label", `Theme: ${theme}`);
    control.title = `Theme: ${theme}`;
    emit("theme");
  };
  let theme = localStorage.getItem("himecat-theme") ?? "auto";
  if (!THEMES.includes(theme)) theme = "auto";
  set(theme);
  control.addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    localStorage.setItem("himecat-theme", theme);
    set(theme);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => emit("theme"));
}

function createStatus() {
  const line = $("status");
  let timer = 0;
  const say = (kind, children, stay) => {
    clearTimeout(timer);
    line.className = `status ${kind}`;
    line.replaceChildren(...children);
    if (stay) timer = setTimeout(() => { line.className = "status"; line.replaceChildren(); }, stay);
  };
  on("saving", () => say("saving", ["Saving …"]));
  on("saved", ({ said, undo, more = [], stay = false }) => say("saved", [icon("check"), h("span", {}, said), ...more, undo ? undoButton() : ""], stay ? 0 : 6000));
  on("problem", (message) => say("failed", [icon("alert"), h("span", {}, message)], 12000));
}

async function dataMenu() {
  const transfer = await import("./transfer.js");
  menu($("data"), "Data", [
    { label: "Export answers …", run: transfer.exportAnswers },
    { label: "Import answers …", run: transfer.importAnswers },
    null,
    { label: "Go back to the model before", run: goBack, disabled: !canGoBack() },
    { label: "API of this server", run: () => { location.href = "/docs"; } },
    ...(narrow.matches ? [null, { label: $("theme").title, run: () => $("theme").click() }, { label: "Keys", run: help }] : []),
  ]);
}
