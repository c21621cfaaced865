// What the page shows, and what its views share: nodes, groups, the choice of a node, numbers as people say them.
//
// The data: `report` is what `fxgraph report --format json` prints, with all rows. `graph` has the nodes by place, column by
// column: nodes.{name, op, target, text, below: what stands under the name, tensor, inputs, group, impure}; groups [{label, parent,
// title}], the whole first; layouts [without parameters, with them], each [[width, rows, boxes, ways]] by group: scene.js reads them;
// memory.{bytes, bars: [[base, begin, end, size, offset]], curve, plan_bytes}; dominator [place or -1]; dead [reason or ""];
// cost.{macs, flops, bytes, parameter_bytes, seconds: as measured}. A part that was not asked for is not there.
const {report, graph} = JSON.parse(document.getElementById("data").textContent);

const nodes = graph.nodes.name.map((name, place) => {
  const node = {place, name, users: [], op: graph.nodes.op[place], target: graph.nodes.target[place]};
  node.text = graph.nodes.text[place];
  node.shownName = cut(name, 30);
  node.below = graph.nodes.below[place];
  node.tensor = graph.nodes.tensor[place];
  node.impure = graph.nodes.impure[place] === 1;
  node.dead = graph.dead ? graph.dead[place] : "";
  node.held = 0;  // bytes of the storage that it makes
  for (const part of ["macs", "flops", "bytes", "parameter_bytes", "seconds"]) node[part] = graph.cost && graph.cost[part] ? graph.cost[part][place] : 0;
  return node;
});
nodes.forEach((node, place) => {
  node.inputs = graph.nodes.inputs[place].map((input) => nodes[input]);
  node.inputs.forEach((input) => input.users.push(node));
  node.last = node;
});
nodes.forEach((node) => node.inputs.forEach((input) => { input.last = node; }));
if (graph.memory && graph.memory.bytes) {
  for (const [base, , , size] of graph.memory.bars) nodes[base].held += size;
}

const groups = graph.groups.map(({label, parent, title}, id) =>
  ({id, label, title, parent: null, up: parent, items: [], first: Infinity, count: 0, macs: 0, seconds: 0, held: 0, dead: 0, open: false}));
groups.forEach((group) => { if (group.up >= 0) group.parent = groups[group.up]; });
nodes.forEach((node, place) => {
  node.parent = groups[graph.nodes.group[place]];
  node.parent.items.push(node);
  for (let group = node.parent; group; group = group.parent) {
    group.first = Math.min(group.first, place);
    group.count += 1;
    group.macs += node.macs;
    group.seconds += node.seconds;
    group.held += node.held;
    group.dead += node.dead ? 1 : 0;
  }
});
groups.forEach((group) => { if (group.parent && group.count > 0) group.parent.items.push(group); });
const first = (item) => item.items ? item.first : item.place;
groups.forEach((group) => group.items.sort((a, b) => first(a) - first(b)));
const whole = groups[0];
whole.open = true;

const peak = (() => {
  if (!graph.memory || graph.memory.curve.length === 0) return null;
  const {curve, bytes} = graph.memory;
  let place = 0;
  curve.forEach((size, i) => { if (size > curve[place]) place = i; });
  return {node: nodes[place], size: curve[place], text: bytes ? formatBytes(curve[place]) : `${curve[place]} values`};
})();

// ---- the choice ----
const listeners = [];
let chosen = null;
function onChoose(listener) { listeners.push(listener); }
function choose(node, reveal = true) {
  chosen = node;
  listeners.forEach((listener) => listener(node, reveal));
}

// ---- numbers and texts ----
function cut(text, length) { return text.length <= length ? text : text.slice(0, length / 2) + "…" + text.slice(text.length - length / 2 + 1); }
function scaled(value, step, units) {
  let unit = 0;
  while (value >= step && unit + 1 < units.length) { value /= step; unit += 1; }
  const digits = unit === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return value.toFixed(digits) + " " + units[unit];
}
function formatSeconds(value) {
  const [scale, unit] = value >= 1 ? [1, "s"] : value >= 1e-3 ? [1e3, "ms"] : [1e6, "µs"];
  return (value * scale).toPrecision(3) + " " + unit;
}
function formatBytes(value) { return scaled(value, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]); }
function formatCount(value) { return scaled(value, 1000, ["", "k", "M", "G", "T", "P"]).trim(); }

// ---- elements ----
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value); else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}
function drawn(name, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
function linkTo(node) {
  return element("a", {class: "link mono" + (node.dead ? " dead" : ""), title: node.text, onclick: () => choose(node)}, node.name);
}
const byId = (id) => document.getElementById(id);
