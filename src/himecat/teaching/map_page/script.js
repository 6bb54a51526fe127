"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const raw = Uint8Array.from(atob(data.points), (c) => c.charCodeAt(0));
const view = new DataView(raw.buffer);
const count = data.documents;
const xs = new Float32Array(count), ys = new Float32Array(count);
const nodes = new Uint32Array(count), sure = new Uint8Array(count);
const unpack = (value) => (value / 65535) * 4 - 2;
for (let i = 0; i < count; i++) {
  xs[i] = unpack(view.getUint16(i * 8, true));
  ys[i] = unpack(view.getUint16(i * 8 + 2, true));
  nodes[i] = view.getUint16(i * 8 + 4, true) + 65536 * view.getUint8(i * 8 + 7);
  sure[i] = view.getUint8(i * 8 + 6);
}

const dark = matchMedia("(prefers-color-scheme: dark)");
const still = document.getElementById("points"), top2d = document.getElementById("names");
const tip = document.getElementById("tip"), pen = top2d.getContext("2d");
const gl = still.getContext("webgl", { antialias: false, premultipliedAlpha: true });
const flat = gl ? null : still.getContext("2d");
const camera = { x: 0, y: 0, zoom: 1 };
let width = 1, height = 1, ratio = 1, colours = null, waiting = false;

/* Okabe and Ito's palette, then lighter and darker shades of it for further categories. */
const palette = dark.matches
  ? [[86, 180, 233], [240, 138, 60], [45, 190, 145], [224, 150, 190], [230, 175, 40], [120, 200, 250], [190, 190, 190]]
  : [[0, 114, 178], [213, 94, 0], [0, 158, 115], [204, 121, 167], [230, 159, 0], [86, 180, 233], [77, 77, 77]];

function categoryColour(node) {
  const number = data.nodes[node].top;
  if (number < 0) return [128, 128, 128];
  const shade = 1 - 0.25 * (Math.floor(number / palette.length) % 3);
  return palette[number % palette.length].map((part) => Math.round(part * shade));
}

function confidenceColour(value) {
  const share = value / 255, low = [213, 94, 0], high = dark.matches ? [86, 180, 233] : [0, 114, 178];
  return low.map((part, at) => Math.round(part + (high[at] - part) * share));
}

function paint() {
  const by = document.querySelector("input[name=colour]:checked").value;
  colours = new Uint8Array(count * 4);
  for (let i = 0; i < count; i++) {
    const [r, g, b] = by === "category" ? categoryColour(nodes[i]) : confidenceColour(sure[i]);
    colours.set([r, g, b, 255], i * 4);
  }
  if (gl) {
    gl.bindBuffer(gl.ARRAY_BUFFER, program.colours);
    gl.bufferData(gl.ARRAY_BUFFER, colours, gl.STATIC_DRAW);
  }
  redraw();
}

const program = gl && start();

function start() {
  const shader = (kind, text) => {
    const made = gl.createShader(kind);
    gl.shaderSource(made, text);
    gl.compileShader(made);
    return made;
  };
  const made = gl.createProgram();
  gl.attachShader(made, shader(gl.VERTEX_SHADER, `
    attribute vec2 place; attribute vec4 colour; uniform vec2 centre; uniform vec2 scale; uniform float size;
    varying vec4 tint;
    void main() {
      gl_Position = vec4((place - centre) * scale, 0.0, 1.0); gl_PointSize = size; tint = colour;
    }`));
  gl.attachShader(made, shader(gl.FRAGMENT_SHADER, `
    precision mediump float; varying vec4 tint; uniform float alpha;
    void main() {
      float far = length(gl_PointCoord - 0.5) * 2.0;
      float edge = alpha * (1.0 - smoothstep(0.7, 1.0, far));
      gl_FragColor = vec4(tint.rgb * edge, edge);
    }`));
  gl.linkProgram(made);
  gl.useProgram(made);
  const places = new Float32Array(count * 2);
  for (let i = 0; i < count; i++) { places[i * 2] = xs[i]; places[i * 2 + 1] = ys[i]; }
  const buffer = (name, size, kind, fixed, values) => {
    const kept = gl.createBuffer(), at = gl.getAttribLocation(made, name);
    gl.bindBuffer(gl.ARRAY_BUFFER, kept);
    gl.bufferData(gl.ARRAY_BUFFER, values, gl.STATIC_DRAW);
    gl.enableVertexAttribArray(at);
    gl.vertexAttribPointer(at, size, kind, fixed, 0, 0);
    return kept;
  };
  buffer("place", 2, gl.FLOAT, false, places);
  const tints = buffer("colour", 4, gl.UNSIGNED_BYTE, true, new Uint8Array(count * 4));
  gl.enable(gl.BLEND);
  gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  const uniform = (name) => gl.getUniformLocation(made, name);
  return { colours: tints, centre: uniform("centre"), scale: uniform("scale"), size: uniform("size"), alpha: uniform("alpha") };
}

const unit = () => (Math.min(width, height) / 2 / 1.04) * camera.zoom;
const toScreen = (x, y) => [width / 2 + (x - camera.x) * unit(), height / 2 - (y - camera.y) * unit()];
const toMap = (px, py) => [camera.x + (px - width / 2) / unit(), camera.y - (py - height / 2) / unit()];

function resize() {
  ratio = window.devicePixelRatio || 1;
  width = top2d.clientWidth;
  height = top2d.clientHeight;
  for (const canvas of [still, top2d]) {
    canvas.width = Math.max(1, Math.round(width * ratio));
    canvas.height = Math.max(1, Math.round(height * ratio));
  }
  redraw();
}

function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; draw(); });
}

function draw() {
  /* As large as leaves room for all of them, and larger the nearer one looks. */
  const size = Math.min(9, Math.max(1.2, Math.sqrt((width * height) / count) * 0.3 * Math.sqrt(camera.zoom)));
  const alpha = Math.min(0.9, 0.45 + 0.1 * camera.zoom);
  if (gl) {
    gl.viewport(0, 0, still.width, still.height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    gl.uniform2f(program.centre, camera.x, camera.y);
    gl.uniform2f(program.scale, (2 * unit()) / width, (2 * unit()) / height);
    gl.uniform1f(program.size, size * ratio);
    gl.uniform1f(program.alpha, alpha);
    gl.drawArrays(gl.POINTS, 0, count);
  } else {
    flat.setTransform(ratio, 0, 0, ratio, 0, 0);
    flat.clearRect(0, 0, width, height);
    flat.globalAlpha = alpha;
    for (let i = 0; i < count; i++) {
      const [x, y] = toScreen(xs[i], ys[i]);
      if (x < 0 || y < 0 || x > width || y > height) continue;
      flat.fillStyle = `rgb(${colours[i * 4]},${colours[i * 4 + 1]},${colours[i * 4 + 2]})`;
      flat.fillRect(x - size / 2, y - size / 2, size, size);
    }
  }
  drawTree();
}

function drawTree() {
  const style = getComputedStyle(document.body);
  const ink = style.color, paper = style.backgroundColor, line = style.getPropertyValue("--soft");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  if (!document.getElementById("discs").checked) return;
  pen.strokeStyle = line;
  const shown = [];
  data.nodes.forEach((node, number) => {
    if (!number) return;
    const [x, y] = toScreen(node.x, node.y), radius = node.radius * unit();
    if (radius < 3 || x + radius < 0 || y + radius < 0 || x - radius > width || y - radius > height) return;
    pen.globalAlpha = node.depth === 1 ? 0.55 : 0.3;
    pen.beginPath();
    pen.arc(x, y, radius, 0, 2 * Math.PI);
    pen.stroke();
    shown.push([node, x, y, radius]);
  });
  pen.globalAlpha = 1;
  pen.textAlign = "center";
  pen.lineJoin = "round";
  const taken = [];
  for (const [node, x, y, radius] of shown.sort((a, b) => a[0].depth - b[0].depth || b[3] - a[3])) {
    /* The name of a category that fills the view is that of what lies in it. */
    if (radius > 0.9 * Math.max(width, height)) continue;
    const size = node.leaf && node.depth > 1 ? 12 : Math.max(13, 17 - 2 * node.depth);
    pen.font = `${node.depth === 1 ? 600 : 400} ${size}px system-ui, sans-serif`;
    const wide = pen.measureText(node.short).width;
    if (wide > 2 * radius + (node.depth === 1 ? 80 : 14)) continue;
    const at = node.leaf ? y : y - radius - 3;
    const box = [x - wide / 2 - 2, at - size, x + wide / 2 + 2, at + 4];
    if (taken.some((one) => box[0] < one[2] && box[2] > one[0] && box[1] < one[3] && box[3] > one[1])) continue;
    taken.push(box);
    pen.strokeStyle = paper;
    pen.lineWidth = 3.5;
    pen.strokeText(node.short, x, at);
    pen.fillStyle = ink;
    pen.fillText(node.short, x, at);
  }
  pen.lineWidth = 1;
}

/* Documents by cells of a grid, so that the nearest one is found at once. */
const CELLS = Math.max(8, Math.min(400, Math.ceil(Math.sqrt(count) / 2)));
const cellOf = (x) => Math.max(0, Math.min(CELLS - 1, Math.floor(((x + 1.3) / 2.6) * CELLS)));
const cells = new Map();
for (let i = 0; i < count; i++) {
  const key = cellOf(xs[i]) * CELLS + cellOf(ys[i]);
  if (!cells.has(key)) cells.set(key, []);
  cells.get(key).push(i);
}

function nearest(px, py, within) {
  const [x, y] = toMap(px, py), far = within / unit();
  let best = -1, least = far * far;
  for (let a = cellOf(x - far); a <= cellOf(x + far); a++) {
    for (let b = cellOf(y - far); b <= cellOf(y + far); b++) {
      for (const i of cells.get(a * CELLS + b) || []) {
        const apart = (xs[i] - x) ** 2 + (ys[i] - y) ** 2;
        if (apart < least) { least = apart; best = i; }
      }
    }
  }
  return best;
}

function tell(px, py) {
  const found = nearest(px, py, 12);
  tip.hidden = found < 0;
  if (found < 0) return;
  const line = (name, text) => Object.assign(document.createElement(name), { textContent: text });
  tip.replaceChildren(
    line("b", data.nodes[nodes[found]].path.join(" › ")),
    line("span", (data.texts && data.texts[found]) || ""),
    line("small", ` ${data.ids[found]} · ${Math.round(sure[found] / 2.55)} %`),
  );
  const right = px > width / 2, low = py > height / 2;
  tip.style.left = right ? "" : `${px + 14}px`;
  tip.style.right = right ? `${width - px + 14}px` : "";
  tip.style.top = low ? "" : `${py + 14}px`;
  tip.style.bottom = low ? `${height - py + 14}px` : "";
}

function zoomAt(px, py, factor) {
  const [x, y] = toMap(px, py);
  camera.zoom = Math.max(0.5, Math.min(400, camera.zoom * factor));
  const [nx, ny] = toMap(px, py);
  camera.x += x - nx;
  camera.y += y - ny;
  tip.hidden = true;
  redraw();
}

const held = new Map();
const place = (event) => {
  const box = top2d.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
};
top2d.addEventListener("pointerdown", (event) => {
  top2d.setPointerCapture(event.pointerId);
  held.set(event.pointerId, place(event));
  tip.hidden = true;
});
top2d.addEventListener("pointermove", (event) => {
  const at = place(event), before = held.get(event.pointerId);
  if (!before) return tell(...at);
  if (held.size === 1) {
    camera.x -= (at[0] - before[0]) / unit();
    camera.y += (at[1] - before[1]) / unit();
    redraw();
  } else if (held.size === 2) {
    const [, other] = [...held].find(([id]) => id !== event.pointerId);
    const apart = (one) => Math.hypot(one[0] - other[0], one[1] - other[1]);
    zoomAt((at[0] + other[0]) / 2, (at[1] + other[1]) / 2, apart(at) / Math.max(apart(before), 1));
  }
  held.set(event.pointerId, at);
});
for (const kind of ["pointerup", "pointercancel"]) top2d.addEventListener(kind, (event) => held.delete(event.pointerId));
top2d.addEventListener("pointerleave", () => { tip.hidden = true; });
top2d.addEventListener("wheel", (event) => {
  event.preventDefault();
  zoomAt(...place(event), Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)));
}, { passive: false });
top2d.addEventListener("dblclick", (event) => zoomAt(...place(event), 2));

const whole = () => { Object.assign(camera, { x: 0, y: 0, zoom: 1 }); redraw(); };
const keys = {
  "+": () => zoomAt(width / 2, height / 2, 1.4), "=": () => zoomAt(width / 2, height / 2, 1.4),
  "-": () => zoomAt(width / 2, height / 2, 1 / 1.4), 0: whole,
  ArrowLeft: () => { camera.x -= 60 / unit(); redraw(); }, ArrowRight: () => { camera.x += 60 / unit(); redraw(); },
  ArrowUp: () => { camera.y += 60 / unit(); redraw(); }, ArrowDown: () => { camera.y -= 60 / unit(); redraw(); },
};
top2d.addEventListener("keydown", (event) => {
  if (!keys[event.key] || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  keys[event.key]();
});
document.getElementById("closer").addEventListener("click", keys["+"]);
document.getElementById("farther").addEventListener("click", keys["-"]);
document.getElementById("whole").addEventListener("click", whole);
document.getElementById("discs").addEventListener("change", redraw);
for (const one of document.querySelectorAll("input[name=colour]")) one.addEventListener("change", paint);
new ResizeObserver(resize).observe(top2d);
paint();
resize();
