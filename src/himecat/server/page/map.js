// The map: documents as points, the tree as lines, and a lasso that selects for one answer together.

import { get, getBytes } from "./api.js";
import { $, button, h, icon, nowhere, number, pathText, percent, plural } from "./dom.js";
import { inside, nearest, PointCloud } from "./points.js";
import { emit, on, setChosen, setFilters, state } from "./state.js";

let cloud;
let over;
let stage;
let tip;
let legend;
let info;
let places = new Float32Array();
let leaves = new Uint16Array();
let sure = new Uint8Array();
let named = [];
const view = { x: 0, y: 0, scale: 1 };
let home = { ...view };
let colouring = "category";
let edges = true;
let lassoing = false;
let line = null;
let hovered = -1;
let waiting = false;

export async function create() {
  const canvas = h("canvas", { "aria-hidden": "true" });
  over = h("canvas", { class: "over", tabindex: "0", role: "application", id: "map-canvas", "aria-roledescription": "map",
    "aria-label": "Map of the documents. Arrows pan, plus and minus zoom, 0 shows all. The list has the same documents." });
  tip = h("div", { class: "tip", hidden: true });
  legend = h("div", { class: "legend", role: "group", "aria-label": "Colours" });
  stage = h("div", { class: "stage" }, canvas, over, tip, legend);
  const by = h("select", { id: "colour-by", onchange: () => { colouring = by.value; colour(); } }, h("option", { value: "category" }, "category"), h("option", { value: "confidence" }, "confidence"));
  const lasso = h("button", { type: "button", "aria-pressed": "false", id: "lasso", onclick: () => setLasso(!lassoing) }, icon("lasso"), "Lasso");
  const lines = h("button", { type: "button", "aria-pressed": "true", onclick: () => { edges = !edges; lines.setAttribute("aria-pressed", String(edges)); later(); } }, "Tree");
  const count = h("span", { class: "soft", id: "map-count" });
  $("map").append(h("div", { class: "map-tools" }, h("h2", { class: "unseen" }, "Map"), count, h("span", { class: "grow" }), h("label", { for: "colour-by" }, "Colour by"), by, lines, lasso, button("Fit", { onclick: showAll })), stage);
  try {
    cloud = new PointCloud(canvas);
    cloud.onrestored = later;
    await read();
  } catch (error) {
    stage.replaceChildren(h("p", { class: "message" }, error.message));
    return;
  }
  pointers();
  over.addEventListener("keydown", onKey);
  new ResizeObserver(later).observe(stage);
  on("theme", () => requestAnimationFrame(colour));
  on("filters", colour);
  on("chosen", colour);
  on("select", later);
  on("new-model", () => read().catch((error) => emit("problem", error.message)));
  on("view", () => { if (state.view === "map") later(); });
}

async function read() {
  const [about, bytes] = await Promise.all([get("/map/info"), getBytes("/map")]);
  info = about;
  const count = info.documents;
  places = new Float32Array(bytes.slice(0, 8 * count));
  leaves = new Uint16Array(bytes.slice(8 * count, 10 * count));
  sure = new Uint8Array(bytes.slice(10 * count, 11 * count));
  const known = info.nodes.filter((one) => one.node !== 0 && state.taxonomy.has(one.node)).map((one) => ({ ...one, ...state.taxonomy.get(one.node) }));
  named = known.sort((a, b) => a.depth - b.depth || b.count - a.count);
  cloud.setPlaces(places);
  cloud.setLines(new Float32Array(info.edges.flat(2)));
  $("map-count").textContent = plural(count, "document");
  bounds();
  colour();
  stage.dataset.points = String(count);
}

function bounds() {
  let [left, right, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
  for (let at = 0; at < places.length; at += 2) {
    left = Math.min(left, places[at]);
    right = Math.max(right, places[at]);
    low = Math.min(low, places[at + 1]);
    high = Math.max(high, places[at + 1]);
  }
  if (!Number.isFinite(left)) return;
  const width = stage.clientWidth || 800;
  const height = stage.clientHeight || 600;
  home = { x: (left + right) / 2, y: (low + high) / 2, scale: 0.9 * Math.min(width / (right - left || 1), height / (high - low || 1)) };
  Object.assign(view, home);
}

function showAll() {
  bounds();
  later();
}

const isDark = () => (document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";

// Hues at the golden angle: neighbours in the tree are far apart in colour. Lightness tells those apart that share a hue.
function hue(place) {
  const turn = (place * 137.508 + 174) % 360;
  const light = isDark() ? [0.72, 0.82, 0.62][place % 3] : [0.52, 0.62, 0.44][place % 3];
  return oklch(light, 0.13, turn);
}

function oklch(light, chroma, turn) {
  const a = chroma * Math.cos((turn * Math.PI) / 180);
  const b = chroma * Math.sin((turn * Math.PI) / 180);
  const l = (light + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (light - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (light - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s, -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s, -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s]
    .map((one) => Math.round(255 * Math.max(0, Math.min(1, one <= 0.0031308 ? 12.92 * one : 1.055 * one ** (1 / 2.4) - 0.055))));
}

// From orange (unsure) over grey to teal (sure): told apart with any kind of colour vision.
function ramp(share) {
  const dark = isDark();
  const low = dark ? [236, 138, 82] : [194, 87, 26];
  const mid = dark ? [130, 140, 140] : [160, 170, 170];
  const high = dark ? [95, 199, 182] : [0, 105, 92];
  const [from, to, part] = share < 0.5 ? [low, mid, share * 2] : [mid, high, share * 2 - 1];
  return from.map((one, at) => Math.round(one + (to[at] - one) * part));
}

// With a category of the tree selected, its children get the colours.
function groups() {
  const { taxonomy, filters } = state;
  const children = taxonomy.childrenOf(filters.node);
  const shown = children.length ? children : [filters.node];
  const of = new Map();
  shown.forEach((node, place) => { for (const one of taxonomy.below(node)) of.set(one, place); });
  return [shown, of];
}

function colour() {
  if (!cloud || !info) return;
  const count = places.length / 2;
  const colours = new Uint8Array(4 * count);
  const [shown, of] = groups();
  const hues = shown.map((_, place) => hue(place));
  const steps = Array.from({ length: 256 }, (_, at) => ramp(at / 255));
  const placeOf = info.leaves.map((leaf) => of.get(leaf.node) ?? -1);
  const { chosen } = state;
  const alpha = count > 50000 ? 150 : 215;
  for (let row = 0; row < count; row += 1) {
    const place = placeOf[leaves[row]] ?? -1;
    const tint = colouring === "confidence" ? steps[sure[row]] : place < 0 ? [128, 138, 138] : hues[place];
    colours[4 * row] = tint[0];
    colours[4 * row + 1] = tint[1];
    colours[4 * row + 2] = tint[2];
    const faint = place < 0 || (chosen.size && !chosen.has(row));
    colours[4 * row + 3] = faint ? 45 : alpha;
  }
  cloud.setColours(colours);
  drawLegend(shown, hues);
  later();
}

function drawLegend(shown, hues) {
  if (colouring === "confidence") {
    const swatch = h("span", { class: "ramp" });
    swatch.style.background = `linear-gradient(90deg, ${[0, 0.5, 1].map((one) => `rgb(${ramp(one).join(" ")})`).join(", ")})`;
    legend.replaceChildren(h("div", { class: "ramp-line" }, "unsure", swatch, "sure"));
    return;
  }
  const { taxonomy, filters } = state;
  const up = filters.node ? button(taxonomy.get(filters.node).depth > 1 ? "one up" : "all", { onclick: () => setFilters({ node: taxonomy.get(filters.node).parent ?? 0 }) }, "back") : null;
  legend.replaceChildren(...[up, ...shown.slice(0, 40).map((node, place) => {
    const swatch = h("span", { class: "swatch" });
    swatch.style.background = `rgb(${hues[place].join(" ")})`;
    return h("button", { type: "button", onclick: () => setFilters({ node }), "aria-pressed": String(node === filters.node) }, swatch, h("span", {}, taxonomy.get(node).name || "All"), h("span", { class: "soft number" }, number(taxonomy.get(node).count)));
  })].filter(Boolean));
}

function later() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    if (state.view === "map" && info) draw();
  });
}

// Many points are small ones; they grow with the zoom, but slower.
const size = () => Math.min(9, Math.max(2, Math.min(5, 480 / Math.sqrt(places.length / 2 + 1))) * Math.max(1, Math.sqrt(view.scale / home.scale)));

function draw() {
  const dark = isDark();
  stage.dataset.view = [view.x, view.y, view.scale].join(" ");
  cloud.draw(view, size(), edges ? (dark ? [0.75, 0.82, 0.81, 0.22] : [0.2, 0.3, 0.3, 0.2]) : null);
  const ratio = Math.min(2, devicePixelRatio || 1);
  const [width, height] = [stage.clientWidth, stage.clientHeight];
  if (over.width !== Math.round(width * ratio) || over.height !== Math.round(height * ratio)) {
    over.width = Math.round(width * ratio);
    over.height = Math.round(height * ratio);
  }
  const ink = over.getContext("2d");
  ink.setTransform(ratio, 0, 0, ratio, 0, 0);
  ink.clearRect(0, 0, width, height);
  names(ink, dark, width, height);
  const strong = dark ? "#e2e9e8" : "#1a2323";
  for (const [row, radius] of [[state.row ?? -1, 8], [hovered, 6]]) {
    if (row < 0 || row >= places.length / 2) continue;
    const [x, y] = toScreen(places[2 * row], places[2 * row + 1]);
    ink.beginPath();
    ink.arc(x, y, radius, 0, 7);
    ink.lineWidth = 2;
    ink.strokeStyle = strong;
    ink.stroke();
  }
  if (line) {
    ink.beginPath();
    line.forEach(([x, y], at) => (at ? ink.lineTo(...toScreen(x, y)) : ink.moveTo(...toScreen(x, y))));
    ink.closePath();
    ink.fillStyle = dark ? "rgb(95 199 182 / 18%)" : "rgb(0 105 92 / 12%)";
    ink.fill();
    ink.strokeStyle = dark ? "#5fc7b6" : "#00695c";
    ink.lineWidth = 1.5;
    ink.stroke();
  }
}

// Names of categories, the higher and larger first, as long as they don't touch.
function names(ink, dark, width, height) {
  const taken = [];
  ink.textAlign = "center";
  ink.textBaseline = "middle";
  ink.lineJoin = "round";
  for (const one of named) {
    const [x, y] = toScreen(one.x, one.y);
    if (x < 0 || y < 0 || x > width || y > height) continue;
    ink.font = one.depth === 1 ? "600 13px system-ui, sans-serif" : "12px system-ui, sans-serif";
    const half = ink.measureText(one.name).width / 2 + 4;
    const box = [x - half, x + half, y - 10, y + 10];
    if (taken.some((other) => box[0] < other[1] && box[1] > other[0] && box[2] < other[3] && box[3] > other[2])) continue;
    taken.push(box);
    ink.lineWidth = 4;
    ink.strokeStyle = dark ? "rgb(23 29 29 / 85%)" : "rgb(255 255 255 / 85%)";
    ink.strokeText(one.name, x, y);
    ink.fillStyle = dark ? "#e2e9e8" : "#1a2323";
    ink.fillText(one.name, x, y);
    if (taken.length > 60) break;
  }
}

const toScreen = (x, y) => [(x - view.x) * view.scale + stage.clientWidth / 2, stage.clientHeight / 2 - (y - view.y) * view.scale];
const toMap = (x, y) => [(x - stage.clientWidth / 2) / view.scale + view.x, view.y - (y - stage.clientHeight / 2) / view.scale];

function zoom(factor, x = stage.clientWidth / 2, y = stage.clientHeight / 2) {
  const before = toMap(x, y);
  view.scale = Math.max(home.scale / 4, Math.min(home.scale * 400, view.scale * factor));
  const after = toMap(x, y);
  view.x += before[0] - after[0];
  view.y += before[1] - after[1];
  later();
}

function setLasso(on_) {
  lassoing = on_;
  $("lasso").setAttribute("aria-pressed", String(on_));
  over.classList.toggle("lasso", on_);
}

function pointers() {
  const down = new Map();
  let moved = 0;
  const at = (event) => [event.clientX - over.getBoundingClientRect().left, event.clientY - over.getBoundingClientRect().top];
  over.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.03 : 0.0015)), ...at(event));
  }, { passive: false });
  over.addEventListener("pointerdown", (event) => {
    over.setPointerCapture(event.pointerId);
    down.set(event.pointerId, at(event));
    moved = 0;
    tip.hidden = true;
    line = (lassoing || event.shiftKey) && down.size === 1 ? [toMap(...at(event))] : null;
  });
  over.addEventListener("pointermove", (event) => {
    const here = at(event);
    const before = down.get(event.pointerId);
    if (!before) {
      hover(...here);
      return;
    }
    moved += Math.abs(here[0] - before[0]) + Math.abs(here[1] - before[1]);
    if (line) line.push(toMap(...here));
    else if (down.size === 2) {
      const other = [...down.entries()].find(([id]) => id !== event.pointerId)[1];
      const far = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1]) || 1;
      zoom(far(here, other) / far(before, other), (here[0] + other[0]) / 2, (here[1] + other[1]) / 2);
    } else {
      view.x -= (here[0] - before[0]) / view.scale;
      view.y += (here[1] - before[1]) / view.scale;
    }
    down.set(event.pointerId, here);
    later();
  });
  const up = (event) => {
    const here = at(event);
    down.delete(event.pointerId);
    if (line && moved > 8) {
      const rows = inside(places, line);
      setChosen(rows);
      emit("saved", { said: `${plural(rows.length, "document")} inside the lasso` });
      setLasso(false);
    } else if (moved < 4 && event.type === "pointerup") pick(...here);
    line = null;
    later();
  };
  over.addEventListener("pointerup", up);
  over.addEventListener("pointercancel", up);
  over.addEventListener("pointerleave", () => { hovered = -1; tip.hidden = true; later(); });
}

const near = (x, y) => nearest(places, ...toMap(x, y), 12 / view.scale);

async function pick(x, y) {
  const row = near(x, y);
  if (row < 0) return;
  const one = await get(`/documents/${row}`);
  emit("select", one);
  emit("open-document");
}

let asked = 0;

// The category at once, the text when it comes.
function hover(x, y) {
  const row = near(x, y);
  if (row === hovered) return;
  hovered = row;
  later();
  tip.hidden = row < 0;
  asked += 1;
  if (row < 0) return;
  const node = info.leaves[leaves[row]]?.node;
  const title = h("b", {}, `${pathText(state.taxonomy.path(node))} · ${percent(sure[row] / 255)}`);
  const text = h("p", { class: "snippet soft" }, "…");
  tip.replaceChildren(title, text);
  tip.style.left = `${Math.min(x + 14, stage.clientWidth - 310)}px`;
  tip.style.top = `${Math.min(y + 14, stage.clientHeight - 80)}px`;
  const own = asked;
  setTimeout(() => {
    if (own !== asked) return;
    get(`/documents/${row}`).then((one) => { 
      if (own !== asked) return;
      if (nowhere(one)) title.textContent = `Fits nowhere: ${percent(one.none)}; if anywhere, ${pathText(one.path)}`;
      text.textContent = one.text.slice(0, 160);
    }).catch(() => {});
  }, 60);
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const stepped = 60 / view.scale;
  const pan = { ArrowLeft: [-stepped, 0], ArrowRight: [stepped, 0], ArrowUp: [0, stepped], ArrowDown: [0, -stepped] }[event.key];
  if (pan) {
    view.x += pan[0];
    view.y += pan[1];
  } else if (event.key === "+" || event.key === "=") zoom(1.3);
  else if (event.key === "-") zoom(1 / 1.3);
  else if (event.key === "0") bounds();
  else return;
  event.preventDefault();
  later();
}
