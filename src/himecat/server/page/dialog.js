// Dialogs and menus. Both give the focus back to where it was.

import { button, h } from "./dom.js";

let serial = 0;

export const isOpen = () => document.querySelector("dialog[open]") !== null;

// `build(dialog)` gives the content; the dialog is gone when it is closed. `close(value)` gives `done` its value.
export function openDialog({ title, className = "", build, done }) {
  serial += 1;
  const heading = h("h2", { id: `dialog-title-${serial}` }, title);
  const dialog = h("dialog", { class: className, "aria-labelledby": heading.id });
  let result;
  const handle = {
    dialog,
    close(value) {
      result = value;
      dialog.close();
    },
  };
  const x = button("", { class: "icon", "aria-label": "Close", onclick: () => dialog.close() }, "close");
  dialog.append(h("header", {}, heading, x), ...[build(handle)].flat());
  dialog.addEventListener("close", () => {
    dialog.remove();
    if (done) done(result);
  });
  // A click beside the dialog closes it.
  dialog.addEventListener("mousedown", (event) => {
    if (event.target !== dialog) return;
    const box = dialog.getBoundingClientRect();
    if (event.clientX < box.left || event.clientX > box.right || event.clientY < box.top || event.clientY > box.bottom) dialog.close();
  });
  document.body.append(dialog);
  dialog.showModal();
  dialog.querySelector("[autofocus]")?.focus();
  return handle;
}

// A footer of a dialog: what is said of it on the left, the buttons on the right.
export function footer(...children) {
  return h("footer", {}, ...children);
}

let openMenu = null;

// `items`: [{label, run, hint?, disabled?} | null]; null is a line between groups.
export function menu(anchor, label, items, at) {
  closeMenu();
  const entries = items.map((item) => item === null
    ? h("div", { role: "separator" })
    : h("button", {
      type: "button", role: "menuitem", tabindex: "-1", disabled: item.disabled,
      onclick: () => { closeMenu(); item.run(); },
    }, h("span", {}, item.label), item.hint && h("kbd", {}, item.hint)));
  const element = h("div", { role: "menu", class: "menu", "aria-label": label }, ...entries);
  const usable = entries.filter((one) => one.tagName === "BUTTON" && !one.disabled);
  element.addEventListener("keydown", (event) => {
    const index = usable.indexOf(document.activeElement);
    const to = { ArrowDown: index + 1, ArrowUp: index - 1, Home: 0, End: -1 }[event.key];
    if (to !== undefined) usable.at(to % usable.length).focus();
    else if (event.key === "Escape" || event.key === "Tab") closeMenu();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  // In a landmark, but not in one that cannot be reached.
  const top = document.querySelector("header.top");
  (top.inert ? document.body : top).append(element);
  const box = anchor.getBoundingClientRect();
  const [x, y] = at ?? [box.left, box.bottom + 4];
  const size = element.getBoundingClientRect();
  element.style.left = `${Math.max(4, Math.min(x, innerWidth - size.width - 4))}px`;
  element.style.top = `${Math.max(4, Math.min(y, innerHeight - size.height - 4))}px`;
  const outside = (event) => { if (!element.contains(event.target)) closeMenu(); };
  document.addEventListener("mousedown", outside);
  anchor.setAttribute("aria-expanded", "true");
  const before = document.activeElement;
  openMenu = () => {
    document.removeEventListener("mousedown", outside);
    anchor.setAttribute("aria-expanded", "false");
    const held = element.contains(document.activeElement);
    element.remove();
    if (held) (before && before !== document.body ? before : anchor).focus();
  };
  usable[0]?.focus();
}

export function closeMenu() {
  openMenu?.();
  openMenu = null;
}
