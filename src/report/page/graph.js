// The picture of the graph: draws what scene.js stacks, opens and closes modules, moves and zooms, shows one node's details.
const kFirstItems = 45;  // as many boxes as are opened by themselves at the start

const picture = byId("picture"), scene = byId("scene"), detail = byId("detail");
let camera = {x: 0, y: 0, zoom: 1};  // scene = (screen - x) / zoom
const marks = new Map();             // item -> its element

const colours = {
  "by kind": null,
  "by MACs": graph.cost ? (item) => item.macs : null,
  "by time": graph.cost && graph.cost.seconds ? (item) => item.seconds : null,
  "by memory made": graph.memory && graph.memory.bytes ? (item) => item.held : null,
};

const hidden = (node) => isParameter(node) && !byId("show-parameters").checked;

// Level by level, as long as a whole level can be shown open.
function openSome() {
  let shown = whole.items.length;
  for (let level = whole.items.filter((item) => item.items); level.length > 0;) {
    shown += level.reduce((sum, group) => sum + group.items.length - 1, 0);
    if (shown > kFirstItems) return;
    level.forEach((group) => { group.open = true; });
    level = level.flatMap((group) => group.items.filter((item) => item.items));
  }
}

function redraw(keep) {
  const before = keep && marks.get(keep) ? marks.get(keep).getBoundingClientRect() : null;
  const top = stackRows(arrangements[byId("show-parameters").checked ? arrangements.length - 1 : 0]);
  marks.clear();
  const frames = [], lines = [], boxes = [];
  const most = heat() ? Math.max(1, ...nodes.filter((node) => !hidden(node)).map(heat())) : 0;
  // Depth is that of modules: a stack of arrangements still to draw, with where they are.
  for (const stack = [[top, 0, 0]]; stack.length > 0;) {
    const [part, x, y] = stack.pop();
    if (part.group !== whole) frames.push(drawFrame(part, x, y));
    part.edges.forEach((edge) => lines.push(drawEdge(part, edge, x, y)));
    part.boxes.forEach((box) => {
      if (box.inner) stack.push([box.inner, x + box.x, y + box.y]);
      else boxes.push(drawBox(box, x, y, most));
    });
  }
  scene.replaceChildren(...frames, ...lines, ...boxes);
  if (before) {
    const after = marks.get(keep) ? marks.get(keep).getBoundingClientRect() : before;
    camera.x += before.x - after.x;
    camera.y += before.y - after.y;
  }
  look();
  mark();
}

const heat = () => colours[byId("colour").value];

function drawFrame(part, x, y) {
  const {group, room, height} = part;
  const made = drawn("g", {class: "frame"}, drawn("rect", {x, y, width: room, height}),
    drawn("text", {x: x + 12, y: y + 17, class: "label"}, "− " + group.title), drawn("title", {}, `${group.label || "all"}: click to close`));
  made.style.setProperty("--fit", `${room / (group.title.length + 3) / 0.62}px`);
  made.addEventListener("click", () => toggle(group));
  made.dataset.group = group.label;
  marks.set(group, made);
  return made;
}

function drawEdge(part, edge, dx, dy) {
  const at = ([x, y]) => `${(x + dx).toFixed(1)} ${(y + dy).toFixed(1)}`, points = pointsOf(part, edge);
  let path = "M" + at(points[0]);
  for (let i = 1; i < points.length; ++i) {
    const [a, b] = [points[i - 1], points[i]];
    // On one height the edge turns back: below its box, or above that which it goes to.
    const isBelow = i + 1 < points.length && points[i + 1][1] < b[1];
    const middle = a[1] === b[1] ? a[1] + (isBelow ? kRowGap : -kRowGap) / 2 : (a[1] + b[1]) / 2;
    path += Math.abs(a[0] - b[0]) < 1 ? "L" + at(b) : `C${at([a[0], middle])} ${at([b[0], middle])} ${at(b)}`;
  }
  const made = drawn("path", {class: "edge", d: path});
  if (edge.to && !edge.to.inner) made.setAttribute("marker-end", "url(#arrow)");
  made.edge = edge;
  made.group = part.group;
  return made;
}

function boxClasses(item) {
  const classes = ["box", item.items ? "group" : item.op];
  if (item.items ? item.dead === item.count : item.dead) classes.push("dead");
  if (!item.items && item.impure) classes.push("impure");
  if (peak && (item.items ? holds(item, peak.node) : item === peak.node)) classes.push("peak");
  return classes.join(" ");
}

function drawBox(box, dx, dy, most) {
  const {item, width, height} = box, x = box.x + dx, y = box.y + dy, [name, below] = boxText(item);
  const rect = drawn("rect", {x, y, width, height});
  if (heat()) rect.style.fill = `color-mix(in srgb, var(--peak) ${Math.round(75 * Math.sqrt(Math.min(1, heat()(item) / most)))}%, var(--box))`;
  const made = drawn("g", {class: boxClasses(item)}, rect,
    drawn("text", {class: "label", x: x + width / 2, y: y + (below ? 16 : 17)}, (item.items ? "+ " : "") + name),
    drawn("title", {}, item.items ? `${item.label || "all"}: ${item.count} nodes, click to open` : item.text + (item.dead ? `\n${item.dead}` : "")));
  if (below) made.append(drawn("text", {class: "small", x: x + width / 2, y: y + 30}, below));
  made.style.setProperty("--fit", `${width / (name.length + 3) / 0.62}px`);
  if (item.items) made.dataset.group = item.label; else made.dataset.node = item.name;
  made.addEventListener("click", () => item.items ? toggle(item) : choose(item, false));
  marks.set(item, made);
  return made;
}

function toggle(group) {
  if (dragged) return;
  group.open = !group.open;
  redraw(group);
}

const holds = (group, node) => {
  for (let at = node.parent; at; at = at.parent) if (at === group) return true;
  return false;
};

// ---- the camera ----
function look() {
  scene.setAttribute("transform", `translate(${camera.x} ${camera.y}) scale(${camera.zoom})`);
  picture.classList.toggle("far", camera.zoom < 0.35);
}
function fit() {
  const {width, height} = picture.getBoundingClientRect(), all = scene.getBBox();
  if (width === 0 || all.width === 0) return;
  // Wide enough to read: what does not fit in height is reached by dragging.
  const zoom = Math.min(1.1, (width - 30) / all.width, Math.max((height - 30) / all.height, 0.8));
  camera = {zoom, x: (width - all.width * zoom) / 2 - all.x * zoom, y: Math.max(14, (height - all.height * zoom) / 2) - all.y * zoom};
  look();
}
function centre(item) {
  const made = marks.get(item);
  if (!made) return;
  const view = picture.getBoundingClientRect();
  camera.zoom = Math.max(camera.zoom, 0.6);
  look();
  const now = made.getBoundingClientRect();
  camera.x += view.x + view.width / 2 - now.x - now.width / 2;
  camera.y += view.y + view.height / 2 - now.y - now.height / 2;
  look();
}

let drag = null, dragged = false;
picture.addEventListener("pointerdown", (event) => { drag = {x: event.clientX, y: event.clientY}; dragged = false; });
window.addEventListener("pointermove", (event) => {
  if (!drag) return;
  const dx = event.clientX - drag.x, dy = event.clientY - drag.y;
  if (!dragged && Math.hypot(dx, dy) < 4) return;
  dragged = true;
  picture.classList.add("moving");
  camera.x += dx;
  camera.y += dy;
  drag = {x: event.clientX, y: event.clientY};
  look();
});
window.addEventListener("pointerup", () => {
  drag = null;
  picture.classList.remove("moving");
  setTimeout(() => { dragged = false; });  // after the click that ends the drag
});
picture.addEventListener("wheel", (event) => {
  event.preventDefault();
  const view = picture.getBoundingClientRect(), x = event.clientX - view.x, y = event.clientY - view.y;
  const zoom = Math.min(4, Math.max(0.02, camera.zoom * Math.exp(-event.deltaY * 0.0015)));
  camera = {zoom, x: x - (x - camera.x) * zoom / camera.zoom, y: y - (y - camera.y) * zoom / camera.zoom};
  look();
}, {passive: false});

// ---- the chosen node ----
function mark() {
  scene.querySelectorAll(".chosen, .near").forEach((made) => made.classList.remove("chosen", "near"));
  if (!chosen || !marks.has(chosen)) return;
  marks.get(chosen).classList.add("chosen");
  const inputs = new Set(chosen.inputs);
  // From an input up to the group that holds both, and down to the chosen node.
  const leadsTo = ({source, to}, group) => inputs.has(source) && (to ? to.item === chosen || holds(to.item, chosen) : !holds(group, chosen));
  scene.querySelectorAll(".edge").forEach((made) => {
    if (made.edge.source === chosen || leadsTo(made.edge, made.group)) made.classList.add("near");
  });
  [...chosen.inputs, ...chosen.users].forEach((near) => { if (marks.has(near)) marks.get(near).classList.add("near"); });
}

function describe(node) {
  const list = (title, items) => items.length === 0 ? [] : [element("h3", {}, title),
    element("p", {}, ...items.slice(0, 60).flatMap((item) => [linkTo(item), " "]), items.length > 60 ? `and ${items.length - 60} more` : "")];
  const facts = [["tensor", node.tensor], ["alive", `${node.name} … ${node.last.name}`]];
  if (node.macs) facts.push(["multiply-adds", formatCount(node.macs)]);
  if (node.bytes) facts.push(["moved", formatBytes(node.bytes)]);
  if (node.held) facts.push(["makes", formatBytes(node.held)]);
  const above = [];
  for (let at = dominatorOf(node); at && above.length < 8; at = dominatorOf(at)) above.push(at);
  detail.replaceChildren(
    element("button", {class: "close", onclick: () => choose(null), title: "close"}, "×"),
    element("b", {class: "mono" + (node.dead ? " dead" : "")}, node.name),
    element("code", {}, node.text),
    ...(node.dead ? [element("h3", {}, "Dead"), element("p", {}, node.dead)] : []),
    ...facts.filter(([, value]) => value).flatMap(([name, value]) => [element("h3", {}, name), element("p", {class: "mono"}, value)]),
    ...list("uses", node.inputs), ...list("used by", node.users), ...list("dominated by", above));
}

onChoose((node, reveal) => {
  detail.hidden = !node;
  if (node) describe(node);
  if (node && reveal) {
    let opened = false;
    if (hidden(node)) { byId("show-parameters").checked = true; opened = true; }
    for (let group = node.parent; group; group = group.parent) { opened = opened || !group.open; group.open = true; }
    if (opened) redraw();
    byId("graph").scrollIntoView();
    centre(node);
  }
  mark();
});

function startGraph() {
  picture.prepend(drawn("defs", {}, drawn("marker", {id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, markerUnits: "userSpaceOnUse", orient: "auto"},
    drawn("path", {d: "M0 0L8 4L0 8z", fill: "var(--edge)"}))));
  byId("names").append(...nodes.map((node) => element("option", {value: node.name})));
  const named = new Map(nodes.map((node) => [node.name, node]));
  byId("find").addEventListener("change", (event) => { if (named.has(event.target.value)) choose(named.get(event.target.value)); });
  Object.keys(colours).forEach((name, i) => { if (i === 0 || colours[name]) byId("colour").append(element("option", {}, name)); });
  byId("colour").addEventListener("change", () => redraw());
  byId("show-parameters").parentElement.hidden = !nodes.some(isParameter);
  byId("show-parameters").addEventListener("change", () => redraw());
  const setAll = (open) => { groups.forEach((group) => { group.open = open; }); whole.open = true; redraw(); fit(); };
  byId("open-all").addEventListener("click", () => setAll(true));
  byId("close-all").addEventListener("click", () => setAll(false));
  byId("open-all").hidden = byId("close-all").hidden = groups.length === 1;
  byId("fit").addEventListener("click", fit);
  const kinds = [["input", "input"], ["output", "output"], ["module", "module call"], ["box", "operator"], ["group", "closed module"]];
  byId("legend").append(...kinds.flatMap(([colour, name]) => [element("i", {style: `background: var(--${colour})`}), name]),
    element("i", {style: "border-color: var(--impure)"}), "writes or draws", element("i", {style: "border: 2.5px solid var(--peak)"}), "memory peak");
  openSome();
  redraw();
  fit();
}
