// A list of rows of one height of which only those in sight exist. Browsers clip elements higher than about 17 million
// pixels, which is 200,000 rows of documents; above that the scroll position is scaled.

const HIGHEST = 16e6;
const AROUND = 6;

export class VirtualList {
  // `draw(index)` gives the element of a row; `element` is what scrolls.
  constructor(element, height, draw) {
    this.element = element;
    this.height = height;
    this.draw = draw;
    this.count = 0;
    this.rows = new Map();
    this.spacer = document.createElement("div");
    this.spacer.className = "spacer";
    this.spacer.setAttribute("role", "presentation");
    element.append(this.spacer);
    element.addEventListener("scroll", () => this.later(), { passive: true });
    new ResizeObserver(() => this.later()).observe(element);
    this.waiting = false;
    this.kept = -1;
    this.onwindow = null;
  }

  later() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.show();
    });
  }

  get scale() { return Math.max(1, (this.count * this.height) / HIGHEST); }

  get top() { return this.element.scrollTop * this.scale; }

  setCount(count) {
    this.count = count;
    this.spacer.style.height = `${Math.min(HIGHEST, count * this.height)}px`;
    this.redraw();
  }

  setHeight(height) {
    if (height === this.height) return;
    this.height = height;
    this.setCount(this.count);
  }

  redraw() {
    for (const row of this.rows.values()) row.remove();
    this.rows.clear();
    this.show();
  }

  redrawRow(index) {
    const old = this.rows.get(index);
    if (!old) return;
    const row = this.place(index);
    old.replaceWith(row);
    this.rows.set(index, row);
  }

  place(index) {
    const row = this.draw(index);
    row.style.transform = `translateY(${index * this.height - this.shift}px)`;
    return row;
  }

  get shift() { return this.top - this.element.scrollTop; }

  // The rows in sight, and the one that has the focus, which must exist wherever it is.
  show() {
    const first = Math.max(0, Math.floor(this.top / this.height) - AROUND);
    const last = Math.min(this.count, Math.ceil((this.top + this.element.clientHeight) / this.height) + AROUND);
    for (const [index, row] of this.rows) {
      if ((index < first || index >= last) && index !== this.kept) {
        row.remove();
        this.rows.delete(index);
      }
    }
    const wanted = [];
    for (let index = first; index < last; index += 1) wanted.push(index);
    if (this.kept >= 0 && this.kept < this.count && (this.kept < first || this.kept >= last)) wanted.push(this.kept);
    for (const index of wanted) {
      if (this.rows.has(index)) {
        if (this.scale > 1) this.rows.get(index).style.transform = `translateY(${index * this.height - this.shift}px)`;
        continue;
      }
      const row = this.place(index);
      this.rows.set(index, row);
      this.spacer.append(row);
    }
    if (this.onwindow) this.onwindow(first, last);
  }

  keep(index) {
    this.kept = index;
  }

  reveal(index) {
    const at = index * this.height;
    const room = this.element.clientHeight;
    if (at < this.top) this.element.scrollTop = at / this.scale;
    else if (at + this.height > this.top + room) this.element.scrollTop = (at + this.height - room) / this.scale;
    this.show();
  }

  get page() { return Math.max(1, Math.floor(this.element.clientHeight / this.height) - 1); }
}
