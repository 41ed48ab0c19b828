"use strict";
// The graph as data: resources and modules, and which of them are drawn.
const data = JSON.parse(document.getElementById("data").textContent);
const KINDS = ["destroy", "replace", "forget", "update", "create", "read", "import"];
const HEIGHT = 28, GAP = 10, BETWEEN = 60, PAD = 14, HEAD = 26, LETTER = 7.3, LONGEST = 44, REDUCED = 3000;
const byId = (id) => document.getElementById(id);
const gravest = (actions) => KINDS.find((kind) => actions[kind]) || "";
const words = (actions) => KINDS.filter((kind) => actions[kind])
  .map((kind) => (actions[kind] > 1 ? `${actions[kind]} ${kind}` : kind)).join(", ");

const modules = new Map();
// Returns a module, with those around it. Paths are like module.a.module.b.
function moduleAt(path) {
  const known = modules.get(path);
  if (known) return known;
  const parts = path.split(".");
  const module = { path, name: parts.slice(-2).join("."), nodes: [], below: [], actions: {}, size: 0, open: false };
  modules.set(path, module);
  if (path === "") {
    Object.assign(module, { open: true, name: "root module", parent: null });
  } else {
    module.parent = moduleAt(parts.slice(0, -2).join("."));
    module.parent.below.push(module);
  }
  return module;
}
const root = moduleAt("");
const nodes = data.nodes, places = new Map();
nodes.forEach((node, at) => {
  Object.assign(node, { at, kind: gravest(node.actions), next: [], before: [] });
  node.home = moduleAt(node.module);
  node.home.nodes.push(node);
  places.set(node.address, node);
  for (let module = node.home; module; module = module.parent) {
    module.size++;
    for (const [action, n] of Object.entries(node.actions)) module.actions[action] = (module.actions[action] || 0) + n;
    if (node.kind) module.open = true;
  }
});
for (const [from, to] of data.edges) {
  nodes[from].next.push(nodes[to]);
  nodes[to].before.push(nodes[from]);
}
const changing = nodes.filter((node) => node.kind);
// What is shown: everything, or what changes, its neighbours, and what the user has chosen or found.
let all = changing.length === 0;
const wanted = new Set();
const isNear = (node) => node.kind || node.next.some((n) => n.kind) || node.before.some((n) => n.kind);
const isShown = (node) => all || node.near || wanted.has(node);
for (const node of nodes) node.near = Boolean(isNear(node));

// Cuts the middle out of a long name: type and name, key and action stay.
function short(text, longest = LONGEST) {
  if (text.length <= longest) return text;
  const head = Math.ceil((longest - 1) / 2);
  return text.slice(0, head) + "…" + text.slice(text.length - (longest - 1 - head));
}

// Boxes and frames: a box is a resource or a closed module, a frame an open module with the boxes in it.
let boxes = [], frames = [], links = [], outer = null;
function arrange() {
  boxes = [];
  frames = [];
  outer = frameOf(root, null, 0);
  const seen = new Set();
  links = [];
  for (const [from, to] of data.edges) {
    const a = nodes[from].box, b = nodes[to].box;
    if (!a || !b || a === b) continue;
    const key = a.id * 1e6 + b.id;
    if (seen.has(key)) continue;
    seen.add(key);
    links.push({ a, b });
    lift(a, b);
  }
  reduce();
  for (const link of links) {
    link.a.links.push(link);
    link.b.links.push(link);
  }
  if (outer) {
    layOut(outer);
    move(outer, 0, 0);
  }
}
function frameOf(module, parent, depth) {
  const frame = { module, parent, depth, items: [], inside: new Set(), next: [], before: [] };
  for (const node of module.nodes) {
    node.box = null;
    if (isShown(node)) frame.items.push(boxOf({ node, label: short(node.label), actions: node.actions, kind: node.kind }, frame));
  }
  for (const below of module.below) {
    const inside = below.open ? frameOf(below, frame, depth + 1) : closed(below, frame);
    if (inside) frame.items.push(inside);
  }
  if (frame.items.length === 0) return null;
  frames.push(frame);
  return frame;
}
function boxOf(box, frame) {
  const count = Object.values(box.actions).reduce((a, b) => a + b, 0);
  box.note = count > 1 || box.members ? words(box.actions) : "";
  const letters = box.label.length + (box.members ? 2 : 0) + (box.note ? box.note.length + 2 : 0);
  Object.assign(box, { id: boxes.length, parent: frame, links: [], next: [], before: [], w: letters * LETTER + 24, h: HEIGHT });
  if (box.node) box.node.box = box;
  boxes.push(box);
  return box;
}
function closed(module, frame) {
  const members = [];
  const gather = (m) => { for (const n of m.nodes) { n.box = null; if (isShown(n)) members.push(n); } m.below.forEach(gather); };
  gather(module);
  if (members.length === 0) return null;
  const label = `${short(module.name)} (${members.length})`;
  const box = boxOf({ module, members, label, actions: module.actions, kind: gravest(module.actions) }, frame);
  for (const node of members) node.box = box;
  return box;
}
// Leaves out what follows from other edges. The edges of resources are reduced already, those of closed modules are not.
function reduce() {
  if (links.length > REDUCED || !boxes.some((box) => box.members)) return;
  const out = new Map(boxes.map((box) => [box, new Set()]));
  for (const { a, b } of links) out.get(a).add(b);
  links = links.filter(({ a, b }) => {
    const seen = new Set([a]), stack = [...out.get(a)].filter((next) => next !== b);
    while (stack.length > 0) {
      const box = stack.pop();
      if (box === b) {
        out.get(a).delete(b);
        return false;
      }
      if (!seen.has(box)) {
        seen.add(box);
        stack.push(...out.get(box));
      }
    }
    return true;
  });
}
// An edge orders the two parts of the innermost frame around both of its ends.
function lift(a, b) {
  const depth = (item) => (item.parent ? item.parent.depth + 1 : 0);
  while (a.parent !== b.parent) {
    if (depth(a) >= depth(b)) a = a.parent;
    else b = b.parent;
  }
  if (a === b) return;
  const key = `${idOf(a)} ${idOf(b)}`;
  if (a.parent.inside.has(key)) return;
  a.parent.inside.add(key);
  a.next.push(b);
  b.before.push(a);
}
const idOf = (item) => (item.id === undefined ? "f" + item.module.path : item.id);

// Columns: what nothing depends on is on the left. Closed modules can make circles, which are cut where they are entered.
function columns(items) {
  const waiting = new Map(items.map((item) => [item, item.before.length]));
  const queue = items.filter((item) => item.before.length === 0);
  const rest = items.slice().sort((a, b) => a.before.length - b.before.length);
  for (const item of items) item.column = 0;
  const done = new Set();
  let last = 0;
  for (let at = 0, more = 0; done.size < items.length; at++) {
    if (at === queue.length) {
      while (done.has(rest[more])) more++;
      queue.push(rest[more]);
    }
    const item = queue[at];
    if (done.has(item)) continue;
    done.add(item);
    last = Math.max(last, item.column);
    for (const other of item.next) {
      if (done.has(other)) continue;
      other.column = Math.max(other.column, item.column + 1);
      waiting.set(other, waiting.get(other) - 1);
      if (waiting.get(other) === 0) queue.push(other);
    }
  }
  const stacks = Array.from({ length: last + 1 }, () => []);
  for (const item of items) stacks[item.column].push(item);
  return stacks;
}
// Places the items of a frame, relative to it. Long columns are folded, so that a frame is not much higher than wide.
function layOut(frame) {
  for (const item of frame.items) if (item.items) layOut(item);
  const area = frame.items.reduce((sum, item) => sum + (item.w + GAP) * (item.h + GAP), 0);
  const limit = Math.max(360, Math.sqrt(area) * 0.9, ...frame.items.map((item) => item.h));
  let x = PAD, bottom = 0;
  const top = frame.parent ? HEAD : PAD;
  for (const stack of columns(frame.items)) {
    if (stack.length === 0) continue;
    for (const [at, item] of stack.entries()) {
      const near = item.before.filter((other) => other.column < item.column);
      item.place = near.length === 0 ? at : near.reduce((sum, other) => sum + other.y + other.h / 2, 0) / near.length;
    }
    stack.sort((a, b) => a.place - b.place);
    let y = top, width = 0;
    for (const item of stack) {
      if (y > top && y + item.h > top + limit) {
        x += width + GAP;
        y = top;
        width = 0;
      }
      Object.assign(item, { x, y });
      y += item.h + GAP;
      width = Math.max(width, item.w);
      bottom = Math.max(bottom, y);
    }
    x += width + BETWEEN;
  }
  frame.w = Math.max(x - BETWEEN + PAD, frame.module.name.length * LETTER + 2 * PAD + 20);
  frame.h = bottom - GAP + PAD;
}
// Makes the places of a frame's items absolute.
function move(frame, dx, dy) {
  if (!frame.parent) Object.assign(frame, { x: 0, y: 0 });
  for (const item of frame.items) {
    item.x += dx;
    item.y += dy;
    if (item.items) move(item, item.x, item.y);
  }
}
