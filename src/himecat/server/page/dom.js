// Elements are made here and nowhere else. Strings become text nodes: no text of a document is ever parsed as HTML.

export function h(tag, props, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "dataset") Object.assign(element.dataset, value);
    else if (name === "style") Object.assign(element.style, value);
    else if (name in PROPERTIES) element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

const PROPERTIES = { value: 1, checked: 1, disabled: 1, textContent: 1, hidden: 1, selected: 1 };

export const $ = (id) => document.getElementById(id);

const ICONS = {
  menu: "M4 7h16M4 12h16M4 17h16",
  close: "M6 6l12 12M18 6L6 18",
  check: "M5 12.5l4.5 4.5L19 7.5",
  move: "M5 12h13M13 6l6 6-6 6",
  none: "M12 4a8 8 0 100 16 8 8 0 000-16zM6.5 17.5l11-11",
  skip: "M6 6l7 6-7 6zM17 6v12",
  undo: "M8 5L4 9l4 4M4 9h10a5 5 0 010 10h-3",
  right: "M9 6l6 6-6 6",
  down: "M6 9l6 6 6-6",
  search: "M10.5 5a5.5 5.5 0 100 11 5.5 5.5 0 000-11zM15 15l5 5",
  sun: "M12 8a4 4 0 100 8 4 4 0 000-8zM12 2.5v2M12 19.5v2M2.5 12h2M19.5 12h2M5.3 5.3l1.4 1.4M17.3 17.3l1.4 1.4M18.7 5.3l-1.4 1.4M6.7 17.3l-1.4 1.4",
  moon: "M19.5 14.5A8 8 0 019.5 4.5a8 8 0 1010 10z",
  auto: "M12 4a8 8 0 100 16 8 8 0 000-16zM12 4v16M12 8h5.5M12 12h8M12 16h5.5",
  help: "M9 9.2a3 3 0 115 2.2c-1.2.9-2 1.5-2 3M12 18v.3",
  lasso: "M12 5c5 0 8 2 8 5s-3 5-8 5-8-2-8-5 3-5 8-5zM8 14.5c-1 1.500 -.5 3 1 4.500",
  alert: "M12 4l9 16H3zM12 10v4.500M12 17v.3",
  back: "M15 6l-6 6 6 6",
};

export function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  svg.setAttribute("class", "glyph");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

export function button(label, props, name) {
  return h("button", { type: "button", ...props }, name && icon(name), label && h("span", {}, label));
}

export const number = new Intl.NumberFormat("en").format;

export function percent(share, digits = 0) {
  if (share === null || share === undefined) return "–";
  const value = 100 * share;
  // 99.7 is not certain, and .3 is not nothing.
  if (digits === 0 && value > 99 && value < 100) return ">99%";
  if (digits === 0 && value > 0 && value < 1) return "<1%";
  return `${value.toFixed(digits)}%`;
}

export const plural = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;

// A bar says by its length what the number beside it says, so that it has no name of its own.
export function bar(share, kind = "") {
  const fill = h("i", { style: { width: `${Math.max(0, Math.min(1, share ?? 0)) * 100}%` } });
  return h("span", { class: `bar ${kind}`, "aria-hidden": "true" }, fill);
}

export function sureness(confidence) {
  if (confidence >= 0.9) return "sure";
  return confidence >= 0.6 ? "fair" : "weak";
}

// Whether a document rather belongs to none of the categories; its path and its confidence are then of the case that it does.
// A label that it was given settles it.
export const nowhere = (one) => (one.none ?? 0) > 0.5 && !one.label?.length;

export function pathText(path) {
  return path && path.length ? path.join(" › ") : "none of these";
}

// The last name is what is read first; those above it say where it is.
export function pathParts(path) {
  if (!path || !path.length) return h("span", { class: "path none" }, "none of these");
  const above = path.slice(0, -1).flatMap((name) => [h("span", { class: "above" }, name), h("span", { class: "sep", "aria-hidden": "true" }, "›"), " "]);
  return h("span", { class: "path" }, ...above, h("b", {}, path[path.length - 1]));
}

export function debounce(call, wait) {
  let timer = 0;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => call(...given), wait);
  };
}
