// The tree as of one version: nodes by id, their children and paths, and a search over names.

export class Taxonomy {
  constructor(nodes) {
    this.nodes = new Map(nodes.map((one) => [one.node, one]));
    this.children = new Map();
    for (const one of nodes) {
      if (one.node === 0) continue;
      if (!this.children.has(one.parent)) this.children.set(one.parent, []);
      this.children.get(one.parent).push(one.node);
    }
    this.paths = new Map();
    this.byPath = new Map();
    for (const one of nodes) this.byPath.set(this.path(one.node).join("\u0000"), one.node);
  }

  has(node) { return this.nodes.has(node); }

  get(node) { return this.nodes.get(node); }

  childrenOf(node) { return this.children.get(node) ?? []; }

  path(node) {
    if (!this.paths.has(node)) {
      const own = this.nodes.get(node);
      this.paths.set(node, !own || node === 0 ? [] : [...this.path(own.parent), own.name]);
    }
    return this.paths.get(node);
  }

  find(path) { return this.byPath.get((path ?? []).join("\u0000")); }

  ancestors(node) {
    const found = [];
    for (let at = this.nodes.get(node)?.parent; at !== null && at !== undefined; at = this.nodes.get(at)?.parent) found.push(at);
    return found;
  }

  below(node) {
    const found = new Set();
    const open = [node];
    while (open.length) {
      const at = open.pop();
      found.add(at);
      open.push(...this.childrenOf(at));
    }
    return found;
  }

  // Nodes whose path holds every word that was typed; those whose own name begins with the last of them come first.
  search(text, { leavesFirst = false } = {}) {
    const words = text.toLowerCase().split(/[\s›/>]+/).filter(Boolean);
    if (!words.length) return [];
    const last = words[words.length - 1];
    const found = [];
    for (const one of this.nodes.values()) {
      if (one.node === 0) continue;
      const whole = this.path(one.node).join(" ").toLowerCase();
      if (!words.every((word) => whole.includes(word))) continue;
      const name = one.name.toLowerCase();
      let rank = name.startsWith(last) ? 0 : name.includes(last) ? 1 : 2;
      if (leavesFirst && !one.leaf) rank += 0.5;
      found.push([rank, one.depth, one.node]);
    }
    found.sort((a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2]);
    return found.map((one) => one[2]);
  }
}
