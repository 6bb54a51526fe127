// Points and lines by WebGL: positions and colours are given once, zoom and pan are two numbers each. No code is made at
// run time, which libraries over WebGL do and the page's Content-Security-Policy forbids.

const POINTS = `
attribute vec2 place; attribute vec4 colour; uniform vec2 scale; uniform vec2 shift; uniform float size; varying vec4 tint;
void main() { gl_Position = vec4(place * scale + shift, 0.0, 1.0); gl_PointSize = size; tint = colour; }`;

const DISC = `
precision mediump float; varying vec4 tint;
void main() {
  float far = length(gl_PointCoord - 0.5) * 2.0;
  float alpha = tint.a * (1.0 - smoothstep(0.75, 1.0, far));
  gl_FragColor = vec4(tint.rgb * alpha, alpha);
}`;

const LINE = `
precision mediump float; uniform vec4 ink;
void main() { gl_FragColor = vec4(ink.rgb * ink.a, ink.a); }`;

function compile(gl, vertex, fragment) {
  const program = gl.createProgram();
  for (const [kind, source] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  return program;
}

export class PointCloud {
  constructor(canvas) {
    const gl = canvas.getContext("webgl", { alpha: true, antialias: false, premultipliedAlpha: true, preserveDrawingBuffer: true });
    if (!gl) throw new Error("This browser has no WebGL, by which the map is drawn. The list has the same documents.");
    this.canvas = canvas;
    this.gl = gl;
    this.count = 0;
    this.lines = 0;
    this.build();
    canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
    canvas.addEventListener("webglcontextrestored", () => this.restore());
  }

  build() {
    const { gl } = this;
    this.points = compile(gl, POINTS, DISC);
    this.edges = compile(gl, POINTS, LINE);
    this.places = gl.createBuffer();
    this.colours = gl.createBuffer();
    this.ends = gl.createBuffer();
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }

  // A lost context takes the buffers with it.
  restore() {
    this.build();
    if (this.kept?.places) this.setPlaces(this.kept.places);
    if (this.kept?.colours) this.setColours(this.kept.colours);
    if (this.kept?.ends) this.setLines(this.kept.ends);
    this.onrestored?.();
  }

  fill(buffer, name, data) {
    const { gl } = this;
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.bufferData(gl.ARRAY_BUFFER, data, gl.STATIC_DRAW);
    this.kept = { ...this.kept, [name]: data };
  }

  setPlaces(places) {
    this.fill(this.places, "places", places);
    this.count = places.length / 2;
  }

  // RGBA, a byte each.
  setColours(colours) { this.fill(this.colours, "colours", colours); }

  setLines(ends) {
    this.fill(this.ends, "ends", ends);
    this.lines = ends.length / 2;
  }

  resize() {
    const ratio = Math.min(2, devicePixelRatio || 1);
    const width = Math.max(1, Math.round(this.canvas.clientWidth * ratio));
    const height = Math.max(1, Math.round(this.canvas.clientHeight * ratio));
    if (this.canvas.width !== width || this.canvas.height !== height) {
      this.canvas.width = width;
      this.canvas.height = height;
    }
    this.ratio = ratio;
  }

  // `view`: scale in pixels per unit and the middle of the window; `ink` of the lines as [r, g, b, a] or null.
  draw(view, size, ink) {
    const { gl } = this;
    this.resize();
    gl.viewport(0, 0, this.canvas.width, this.canvas.height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    const scale = [(2 * view.scale) / this.canvas.clientWidth, (2 * view.scale) / this.canvas.clientHeight];
    const shift = [-view.x * scale[0], -view.y * scale[1]];
    if (ink && this.lines) {
      this.use(this.edges, scale, shift, 1);
      gl.uniform4fv(gl.getUniformLocation(this.edges, "ink"), ink);
      this.attribute(this.edges, "place", this.ends, 2, gl.FLOAT, false);
      gl.drawArrays(gl.LINES, 0, this.lines);
    }
    if (!this.count) return;
    this.use(this.points, scale, shift, size * this.ratio);
    this.attribute(this.points, "place", this.places, 2, gl.FLOAT, false);
    this.attribute(this.points, "colour", this.colours, 4, gl.UNSIGNED_BYTE, true);
    gl.drawArrays(gl.POINTS, 0, this.count);
  }

  use(program, scale, shift, size) {
    const { gl } = this;
    gl.useProgram(program);
    gl.uniform2fv(gl.getUniformLocation(program, "scale"), scale);
    gl.uniform2fv(gl.getUniformLocation(program, "shift"), shift);
    gl.uniform1f(gl.getUniformLocation(program, "size"), size);
  }

  attribute(program, name, buffer, width, kind, normalized) {
    const { gl } = this;
    const where = gl.getAttribLocation(program, name);
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.enableVertexAttribArray(where);
    gl.vertexAttribPointer(where, width, kind, normalized, 0, 0);
  }
}

// The nearest point within `reach` units, or -1. 150,000 points take less than a millisecond.
export function nearest(places, x, y, reach) {
  let best = reach * reach;
  let found = -1;
  for (let at = 0, row = 0; at < places.length; at += 2, row += 1) {
    const dx = places[at] - x;
    const dy = places[at + 1] - y;
    const far = dx * dx + dy * dy;
    if (far < best) {
      best = far;
      found = row;
    }
  }
  return found;
}

// Rows of the points inside a closed line, by the even-odd rule.
export function inside(places, line) {
  const rows = [];
  const xs = line.map((one) => one[0]);
  const ys = line.map((one) => one[1]);
  const [left, right, low, high] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  for (let at = 0, row = 0; at < places.length; at += 2, row += 1) {
    const x = places[at];
    const y = places[at + 1];
    if (x < left || x > right || y < low || y > high) continue;
    let within = false;
    for (let i = 0, j = line.length - 1; i < line.length; j = i, i += 1) {
      if ((ys[i] > y) !== (ys[j] > y) && x < ((xs[j] - xs[i]) * (y - ys[i])) / (ys[j] - ys[i]) + xs[i]) within = !within;
    }
    if (within) rows.push(row);
  }
  return rows;
}
