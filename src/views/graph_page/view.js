// The drawing: only what is in the window, or near it, is in the document.
const NAMESPACE = "http://www.w3.org/2000/svg", FAR = 0.35, EDGES = 6000;
const svg = byId("graph"), told = byId("told"), search = byId("search"), details = byId("details");
const view = { x: 0, y: 0, scale: 1 };
let chosen = null, drawn = null, pending = false;
const make = (name, attributes, text) => {
  const element = document.createElementNS(NAMESPACE, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
};
const canvas = make("g", {});
svg.append(canvas);
const size = () => ({ w: svg.clientWidth || 800, h: svg.clientHeight || 600 });
// The part of the drawing that is visible, with a margin.
function visible(margin) {
  const { w, h } = size(), s = view.scale;
  return { x1: (-view.x - margin * w) / s, y1: (-view.y - margin * h) / s, x2: (-view.x + w * (1 + margin)) / s, y2: (-view.y + h * (1 + margin)) / s };
}
const meets = (item, part) => item.x < part.x2 && item.x + item.w > part.x1 && item.y < part.y2 && item.y + item.h > part.y1;
function moved() {
  if (pending) return;
  pending = true;
  requestAnimationFrame(() => {
    pending = false;
    show();
  });
}
// Moves the drawing, and draws again what has come into the window.
function show() {
  canvas.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.scale})`);
  const now = visible(0);
  const same = drawn && drawn.far === view.scale < FAR && drawn.scale === view.scale;
  const within = same && now.x1 >= drawn.x1 && now.y1 >= drawn.y1 && now.x2 <= drawn.x2 && now.y2 <= drawn.y2;
  if (!within) paint();
}
const curve = ({ a, b }) => {
  const x1 = a.x + a.w, y1 = a.y + a.h / 2, x2 = b.x, y2 = b.y + b.h / 2, bend = Math.max(24, Math.abs(x2 - x1) / 3);
  return `M${x1},${y1}C${x1 + bend},${y1} ${x2 - bend},${y2} ${x2},${y2}`;
};
function paint() {
  const part = visible(0.7), far = view.scale < FAR;
  drawn = { ...part, far, scale: view.scale };
  const parts = [];
  for (const frame of frames) {
    if (!frame.parent || !meets(frame, part)) continue;
    parts.push(make("rect", { class: "frame", x: frame.x, y: frame.y, width: frame.w, height: frame.h, rx: 8 }));
  }
  const chosenBox = chosen && chosen.box;
  const near = new Set(chosenBox ? [chosenBox] : []);
  if (chosenBox) for (const link of chosenBox.links) near.add(link.a).add(link.b);
  const text = search.value.trim();
  const isOff = (box) => (chosenBox ? !near.has(box) : text !== "" && !found(box));
  const seen = links.filter(({ a, b }) => meets(a, part) || meets(b, part));
  if (seen.length <= EDGES) {
    parts.push(make("path", { class: chosenBox || text ? "edge off" : "edge", d: seen.map(curve).join("") }));
  }
  if (chosenBox) parts.push(make("path", { class: "near", d: chosenBox.links.map(curve).join("") }));
  const shown = boxes.filter((box) => meets(box, part));
  if (far) {
    // At this scale nothing can be read: one path for all boxes of a kind.
    const groups = new Map();
    for (const box of shown) {
      const key = `far ${box.kind}${isOff(box) ? " off" : ""}`;
      groups.set(key, (groups.get(key) || "") + `M${box.x},${box.y}h${box.w}v${box.h}h${-box.w}z`);
    }
    for (const [key, d] of groups) parts.push(make("path", { class: key, d }));
  } else {
    for (const box of shown) parts.push(group(box, isOff(box), box === chosenBox));
  }
  for (const frame of frames) {
    if (!frame.parent || !meets(frame, part)) continue;
    const name = make("text", { class: "frame-name", x: frame.x + 10, y: frame.y + 17, "data-module": frame.module.path }, `▾ ${short(frame.module.name)}`);
    name.append(make("title", {}, `${frame.module.path}: click to close`));
    parts.push(name);
  }
  // The box with the focus is drawn anew.
  const focused = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.address : undefined;
  canvas.replaceChildren(...parts);
  if (focused !== undefined && svg.contains(document.activeElement) === false && document.activeElement === document.body) {
    const again = canvas.querySelector(`[data-address="${CSS.escape(focused)}"]`);
    if (again) again.focus({ preventScroll: true });
  }
}
function group(box, off, isChosen) {
  const key = box.node ? box.node.address : box.module.path;
  const what = words(box.actions);
  const element = make("g", {
    class: ["node", box.kind, box.members ? "closed" : "", off ? "off" : "", isChosen ? "chosen" : ""].filter(Boolean).join(" "),
    tabindex: "0", role: "button", "data-address": key, "aria-label": [key, what].filter(Boolean).join(": "),
  });
  element.append(make("rect", { x: box.x, y: box.y, width: box.w, height: box.h, rx: 5 }));
  if (box.kind) element.append(make("rect", { class: "stripe", x: box.x, y: box.y, width: 5, height: box.h, rx: 2 }));
  const label = make("text", { x: box.x + 12, y: box.y + 18 }, (box.members ? "▸ " : "") + box.label);
  if (box.note) {
    const note = make("tspan", { class: "count", dx: 10 }, box.note);
    label.append(note);
  }
  element.append(label, make("title", {}, [key, what].filter(Boolean).join(": ")));
  return element;
}
// Arranges and draws everything again. `keep` is a box or frame that stays where it is in the window.
function draw(keep) {
  const find = (items) => keep && items.find((i) => (keep.node ? i.node === keep.node : i.module === keep.module && !i.node));
  const old = keep && { x: keep.x * view.scale + view.x, y: keep.y * view.scale + view.y };
  arrange();
  drawn = null;
  const again = find(boxes) || find(frames);
  if (again) {
    view.x = old.x - again.x * view.scale;
    view.y = old.y - again.y * view.scale;
    show();
  } else {
    fit();
  }
  tell();
}
// Shows everything, if that can be read; else the upper left part.
function fit() {
  const { w, h } = size();
  if (!outer) {
    canvas.replaceChildren();
    return;
  }
  const whole = Math.min(w / outer.w, (h - 40) / outer.h, 1);
  view.scale = Math.max(whole, 0.04);
  view.x = Math.max(0, (w - outer.w * view.scale) / 2);
  view.y = Math.max(0, (h - 40 - outer.h * view.scale) / 2);
  drawn = null;
  show();
}
function start() {
  draw();
  const { w } = size();
  // A large drawing begins where it can be read.
  if (outer && view.scale < 0.5) {
    view.scale = w < 600 ? 0.7 : 0.8;
    view.x = view.y = 0;
    drawn = null;
    show();
  }
}
function zoom(factor, x, y) {
  const { w, h } = size();
  const [cx, cy] = [x === undefined ? w / 2 : x, y === undefined ? h / 2 : y];
  const scale = Math.min(3, Math.max(0.03, view.scale * factor));
  view.x = cx - ((cx - view.x) * scale) / view.scale;
  view.y = cy - ((cy - view.y) * scale) / view.scale;
  view.scale = scale;
  moved();
}
function pan(dx, dy) {
  view.x += dx;
  view.y += dy;
  moved();
}
// Moves a box into the middle of the window, at a scale at which it can be read.
function bring(box) {
  const { w, h } = size();
  view.scale = Math.max(view.scale, 0.8);
  view.x = w / 2 - (box.x + box.w / 2) * view.scale;
  view.y = h / 2 - (box.y + box.h / 2) * view.scale;
  drawn = null;
  show();
}
