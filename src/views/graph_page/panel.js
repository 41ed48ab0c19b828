// What is chosen, searched and listed; keys, pointers and buttons.
const matches = (node, text) => (node.found ||= (node.address + " " + words(node.actions) + " " + (node.changes || []).map((c) => c.text).join(" ")).toLowerCase()).includes(text);
const found = (box) => {
  const text = search.value.trim().toLowerCase();
  return (box.members || [box.node]).some((node) => matches(node, text));
};
const LISTED = 300;
const h = (name, attributes, ...children) => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
};
const plural = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;
// Opens the modules around a resource, and shows it if it is not among what changes.
function reveal(node) {
  let changed = false;
  for (let module = node.home; module; module = module.parent) {
    if (!module.open) changed = module.open = true;
  }
  if (!isShown(node)) {
    wanted.add(node);
    changed = true;
  }
  if (changed) draw();
}
function choose(node, andBring) {
  chosen = node;
  if (node) {
    reveal(node);
    describe(node);
  }
  details.hidden = !node;
  document.body.classList.remove("searching");
  drawn = null;
  if (node && andBring) bring(node.box);
  else show();
  tell();
}
const link = (node) => h("li", {}, h("button", { onclick: () => choose(node, true), title: node.address },
  h("span", { class: "mark " + node.kind }), h("span", {}, [node.address, words(node.actions)].filter(Boolean).join(": "))));
function listOf(title, list) {
  if (list.length === 0) return [];
  const changed = list.filter((node) => node.kind), others = list.filter((node) => !node.kind);
  const items = [...changed, ...others].slice(0, LISTED).map(link);
  if (list.length > LISTED) items.push(h("li", {}, `and ${list.length - LISTED} more`));
  return [h("h3", {}, title), h("ul", {}, ...items)];
}
// The lines of a change, each with the colour of its sign.
function difference(text) {
  const block = h("pre", { tabindex: "0" });
  for (const line of text.split("\n")) {
    const sign = line.trimStart();
    let kind = "";
    if (sign.includes("# forces replacement")) kind = "why";
    else if (sign.startsWith("#")) kind = "note";
    else if (/^(-\/\+|\+\/-|\+\/\.|~) /.test(sign)) kind = "mod";
    else if (sign.startsWith("+ ")) kind = "add";
    else if (sign.startsWith("- ")) kind = "del";
    block.append(kind ? h("span", { class: kind }, line) : line, "\n");
  }
  return block;
}
const because = (change) => (change.because ? [h("span", { class: "because" }, ` because of ${change.because.join(", ")}`)] : []);
function describe(node) {
  const parts = [
    h("button", { class: "close", "aria-label": "Close", onclick: () => choose(null) }, "✕"),
    h("h2", {}, h("span", { class: "mark " + node.kind }), node.address),
    h("p", {}, words(node.actions) || (data.plan ? "No changes" : "")),
  ];
  const changes = node.changes || [];
  const open = changes.length <= 3;
  for (const change of changes.slice(0, 50)) {
    const part = h("details", open ? { open: "" } : {}, h("summary", {}, `${change.address}: ${change.action}`, ...because(change)));
    const fill = () => { if (part.children.length === 1) part.append(difference(change.text)); };
    part.addEventListener("toggle", fill);
    if (open) fill();
    parts.push(part);
  }
  if (changes.length > 50) parts.push(h("p", {}, `and ${changes.length - 50} more instances`));
  parts.push(...listOf("Depends on", node.next), ...listOf("Needed by", node.before));
  if (data.explain && node.kind) parts.push(h("h3", {}, "Where its values come from"), h("pre", {}, data.explain + changes[0].address));
  details.replaceChildren(...parts);
  details.scrollTop = 0;
}
// The list of what changes, or of what the search finds, the gravest first.
function tell() {
  const text = search.value.trim().toLowerCase();
  const list = text ? nodes.filter((node) => matches(node, text)) : changing.length > 0 ? changing : nodes;
  const groups = [...KINDS, ""].map((kind) => [kind, list.filter((node) => node.kind === kind)]);
  const parts = [];
  let room = LISTED;
  for (const [kind, some] of groups) {
    if (some.length === 0) continue;
    parts.push(h("h2", {}, h("span", { class: "mark " + kind }), `${kind || (data.plan ? "no changes" : "resources")} (${some.length})`));
    const items = some.slice(0, room).map((node) => {
      const item = link(node);
      item.firstChild.classList.toggle("chosen", node === chosen);
      return item;
    });
    room -= items.length;
    if (items.length < some.length) items.push(h("li", {}, `and ${some.length - items.length} more: search for them`));
    parts.push(h("ul", {}, ...items));
  }
  byId("list").replaceChildren(...parts);
  const shown = boxes.reduce((sum, box) => sum + (box.members ? box.members.length : 1), 0);
  told.textContent = text ? `${list.length} of ${plural(nodes.length, "resource")} found` : `${shown} of ${plural(nodes.length, "resource")} shown`;
}
function fold(module, open) {
  const keep = frames.find((f) => f.module === module) || boxes.find((b) => b.module === module);
  module.open = open === undefined ? !module.open : open;
  draw(keep);
}
function foldAll() {
  const some = [...modules.values()].some((module) => !module.open);
  for (const module of modules.values()) module.open = some || module === root;
  byId("fold").textContent = some ? "Close modules" : "Open modules";
  draw();
}
function showAll(value) {
  all = value;
  byId("all").checked = all;
  if (!all) wanted.clear();
  draw();
}
// The next or previous change, in the order of the list.
function step(by) {
  const order = KINDS.flatMap((kind) => changing.filter((node) => node.kind === kind));
  if (order.length === 0) return;
  const at = order.indexOf(chosen);
  choose(order[at < 0 ? (by > 0 ? 0 : order.length - 1) : (at + by + order.length) % order.length], true);
}
function pick(target) {
  const element = target.closest ? target.closest("[data-address],[data-module]") : null;
  if (!element || !svg.contains(element)) return false;
  if (element.dataset.module !== undefined) fold(modules.get(element.dataset.module), false);
  else if (places.has(element.dataset.address)) choose(chosen === places.get(element.dataset.address) ? null : places.get(element.dataset.address));
  else fold(modules.get(element.dataset.address), true);
  return true;
}
// At a scale without single boxes, a click finds the box by its place.
function pickAt(x, y) {
  const [px, py] = [(x - view.x) / view.scale, (y - view.y) / view.scale];
  const box = boxes.find((b) => px >= b.x && px <= b.x + b.w && py >= b.y && py <= b.y + b.h);
  if (!box) return choose(null);
  if (box.node) choose(box.node, true);
  else fold(box.module, true);
}
const pointers = new Map();
let dragged = 0;
svg.addEventListener("pointerdown", (event) => {
  if (event.button > 0) return;
  pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
  dragged = pointers.size > 1 ? 99 : 0;
});
svg.addEventListener("pointermove", (event) => {
  const last = pointers.get(event.pointerId);
  if (!last) return;
  const now = { x: event.clientX, y: event.clientY }, corner = svg.getBoundingClientRect();
  if (pointers.size === 2) {
    const [other] = [...pointers].filter(([id]) => id !== event.pointerId).map(([, p]) => p);
    const apart = (p) => Math.hypot(p.x - other.x, p.y - other.y);
    pan((now.x - last.x) / 2, (now.y - last.y) / 2);
    if (apart(last) > 0) zoom(apart(now) / apart(last), (now.x + other.x) / 2 - corner.left, (now.y + other.y) / 2 - corner.top);
  } else {
    dragged += Math.abs(now.x - last.x) + Math.abs(now.y - last.y);
    if (dragged > 4) {
      // Only now, since a captured click would not go to a box.
      if (!svg.hasPointerCapture(event.pointerId)) svg.setPointerCapture(event.pointerId);
      pan(now.x - last.x, now.y - last.y);
    }
  }
  pointers.set(event.pointerId, now);
});
for (const end of ["pointerup", "pointercancel", "pointerleave"]) svg.addEventListener(end, (event) => pointers.delete(event.pointerId));
svg.addEventListener("click", (event) => {
  if (dragged > 4) return;
  if (pick(event.target)) return;
  const corner = svg.getBoundingClientRect();
  pickAt(event.clientX - corner.left, event.clientY - corner.top);
});
svg.addEventListener("wheel", (event) => {
  event.preventDefault();
  const corner = svg.getBoundingClientRect();
  const unit = event.deltaMode === 1 ? 16 : 1;
  if (event.ctrlKey || event.metaKey) zoom(Math.exp(-event.deltaY * unit * 0.003), event.clientX - corner.left, event.clientY - corner.top);
  else if (event.shiftKey && !event.deltaX) pan(-event.deltaY * unit, 0);
  else pan(-event.deltaX * unit, -event.deltaY * unit);
}, { passive: false });
const KEYS = {
  ArrowLeft: () => pan(60, 0), ArrowRight: () => pan(-60, 0), ArrowUp: () => pan(0, 60), ArrowDown: () => pan(0, -60),
  "+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(0.8), 0: fit, n: () => step(1), p: () => step(-1),
  "/": () => search.focus(), a: () => showAll(!all), m: foldAll, "?": () => byId("keys").showModal(),
  Escape: () => { search.value = ""; choose(null); },
};
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("keys").open) return;
  const typing = event.target === search;
  if (typing && event.key !== "Escape" && event.key !== "Enter") return;
  if (event.key === "Enter" || event.key === " ") {
    const first = typing && byId("list").querySelector("li button");
    if (first) first.click();
    else if (!svg.contains(event.target) || !pick(event.target)) return;
    event.preventDefault();
    return;
  }
  // Lists and texts scroll by the arrow keys.
  if (event.key.startsWith("Arrow") && event.target.closest && event.target.closest("nav, aside")) return;
  if (Object.hasOwn(KEYS, event.key)) {
    event.preventDefault();
    KEYS[event.key]();
  }
});
search.addEventListener("input", () => {
  document.body.classList.toggle("searching", search.value.trim() !== "");
  drawn = null;
  show();
  tell();
});
byId("all").addEventListener("change", (event) => showAll(event.target.checked));
byId("fold").addEventListener("click", foldAll);
byId("larger").addEventListener("click", () => zoom(1.25));
byId("smaller").addEventListener("click", () => zoom(0.8));
byId("fit").addEventListener("click", fit);
byId("help").addEventListener("click", () => byId("keys").showModal());
new ResizeObserver(() => { drawn = null; show(); }).observe(svg);
byId("title").textContent = data.plan || `${plural(nodes.length, "resource")}`;
byId("all").checked = all;
byId("all-label").hidden = changing.length === 0;
byId("fold").hidden = modules.size === 1;
const legend = KINDS.filter((kind) => root.actions[kind]);
byId("legend").append(...legend.map((kind) => h("span", {}, h("span", { class: "mark " + kind }), kind)),
  h("span", {}, data.plan ? "Grey: no changes" : "Left depends on right"));
start();
