// What the picture shows while some groups are open: boxes, frames and edges with their places.
//
// Every open group is laid out by itself, innermost first, and is a box to the one around it. An edge that leaves or enters an
// open group does so through a port on its lower or upper side, one for each box it comes from.
const kHead = 26, kPadding = 14;

function arrange(hidden) {
  // What stands for an item: the outermost closed group around it, or itself.
  const shown = (item) => {
    let visible = item;
    for (let group = item.parent; group; group = group.parent) if (!group.open) visible = group;
    return visible;
  };
  const parts = new Map();  // open group -> {edges: Map, ins: Set, outs: Set}
  const part = (group) => {
    if (!parts.has(group)) parts.set(group, {edges: new Map(), ins: new Set(), outs: new Set()});
    return parts.get(group);
  };
  const addEdge = (group, from, to, source) => {
    const {edges} = part(group);
    if (!edges.has(from)) edges.set(from, new Map());
    const targets = edges.get(from);
    if (!targets.has(to)) targets.set(to, new Set());
    targets.get(to).add(source);
  };
  const visible = new Map();
  nodes.forEach((node) => { if (!hidden(node)) visible.set(node, shown(node)); });
  const connect = (from, to) => {
    const above = new Set();
    for (let group = from.parent; group; group = group.parent) above.add(group);
    let meet = to.parent, down = to;
    for (; !above.has(meet); down = meet, meet = meet.parent) {
      part(meet).ins.add(from);
      addEdge(meet, "in", down, from);
    }
    let up = from;
    for (let group = from.parent; group !== meet; up = group, group = group.parent) {
      part(group).outs.add(from);
      addEdge(group, up, "out", from);
    }
    addEdge(meet, up, down, from);
  };
  visible.forEach((to, node) => node.inputs.forEach((input) => {
    const from = visible.get(input);
    if (from && from !== to) connect(from, to);
  }));
  const kept = new Set();
  visible.forEach((item) => { for (let at = item; at && !kept.has(at); at = at.parent) kept.add(at); });
  return arrangeGroup(whole, part, kept);
}

function arrangeGroup(group, part, kept) {
  const {edges, ins, outs} = part(group);
  const boxes = [], index = new Map(), inner = new Map();
  const add = (key, box) => { index.set(key, boxes.length); boxes.push(box); };
  ins.forEach((source) => add("in" + portName(source), {width: 8, height: 0, end: -1}));
  group.items.forEach((item) => {
    if (!kept.has(item)) return;
    if (item.items && item.open) inner.set(item, arrangeGroup(item, part, kept));
    const size = inner.get(item) || boxSize(item);
    add(item, {width: size.width, height: size.height, item});
  });
  outs.forEach((source) => add("out" + portName(source), {width: 8, height: 0, end: 1}));

  const lines = [];
  const offset = (item, ports, source) => inner.has(item) ? inner.get(item)[ports].get(source) - inner.get(item).width / 2 : 0;
  edges.forEach((targets, from) => targets.forEach((sources, to) => sources.forEach((source) => lines.push({
    from: index.get(from === "in" ? "in" + portName(source) : from), fromX: from === "in" ? 0 : offset(from, "outs", source),
    to: index.get(to === "out" ? "out" + portName(source) : to), toX: to === "out" ? 0 : offset(to, "ins", source), source, target: to,
  }))));
  const layout = layOut(boxes, lines);
  const isWhole = group === whole;
  const title = isWhole ? 0 : shortLabel(group).length * 7.6 + 40;
  const width = Math.max(layout.width + 2 * kPadding, title), dx = (width - layout.width) / 2, dy = isWhole ? kPadding : kHead;
  const at = (x, y) => [x + dx, y + dy];
  const ports = (kind, sources) => new Map([...sources].map((s) => [s, layout.places[index.get(kind + portName(s))].x + dx]));
  const height = layout.height + dy + (outs.size > 0 && !isWhole ? 0 : kPadding);
  const bottom = height;
  return {
    group, width, height, ins: ports("in", ins), outs: ports("out", outs),
    boxes: boxes.filter((box) => box.item).map((box) => {
      const place = layout.places[index.get(box.item)], [x, y] = at(place.x - box.width / 2, place.y);
      return {item: box.item, x, y, width: box.width, height: box.height, inner: inner.get(box.item)};
    }),
    edges: lines.map((line, i) => {
      const points = layout.points[i].map(([x, y]) => at(x, y));
      if (boxes[line.from].end < 0) points.unshift([points[0][0], 0]);
      if (boxes[line.to].end > 0) points.push([points[points.length - 1][0], bottom]);
      return {source: line.source, target: line.target, points, arrow: boxes[line.to].item && !inner.has(boxes[line.to].item)};
    }),
  };
}

const portName = (item) => item.items ? "g" + item.id : "n" + item.place;

// ---- boxes ----
const cut = (text, length) => text.length <= length ? text : text.slice(0, length / 2) + "…" + text.slice(text.length - length / 2 + 1);
const shortTarget = (target) => cut(target.replace(/^(torch\.ops\.)?aten(::|\.)/, "").replace(/\.default$/, ""), 30);
const sizesOf = (tensor) => { const sizes = tensor.match(/\[([^\]]*)\]/); return sizes ? sizes[1].replace(/, /g, "×") : ""; };

function shortLabel(group) {
  if (group.stage || !group.parent || group.parent.stage || !group.parent.label) return cut(group.label || "all", 40);
  return cut(group.label.slice(group.parent.label.length + 1), 40);
}

function boxText(item) {
  if (item.items) {
    const dead = item.dead ? ` · ${item.dead} dead` : "";
    return [shortLabel(item), `${item.count} nodes` + (item.macs ? ` · ${formatCount(item.macs)}MACs` : "") + dead];
  }
  const what = item.op === "placeholder" || item.op === "output" ? "" : shortTarget(item.target);
  const sizes = sizesOf(item.tensor);
  return [cut(item.name, 30), [what === item.name ? "" : what, sizes].filter((text) => text).join(" · ")];
}

function boxSize(item) {
  const [name, below] = boxText(item);
  return {width: Math.max(64, name.length * 7.6 + 20, below.length * 6.5 + 18), height: below ? 38 : 26};
}
