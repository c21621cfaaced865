// A layered drawing of a few boxes: where each goes, and the bends of the edges between them.
//
// The method of Sugiyama, Tagawa and Toda: layers by longest path, sources beside what first uses them; a bend for each layer an
// edge passes; barycentre sweeps against crossings, averaging sweeps to straighten. Boxes come in an order in which most edges
// point forward; those that do not are drawn upward. `ends` are boxes that belong into the first (-1) or last (1) layer.
// Near-linear in boxes and bends.
const kGapX = 22, kGapY = 34, kBendWidth = 10, kMaxBends = 40, kSweeps = 10;

function layOut(boxes, edges) {
  const cells = boxes.map((box) => ({width: box.width, height: box.height, end: box.end || 0, layer: 0, x: 0, above: [], below: []}));
  const forward = edges.map((edge) => edge.from <= edge.to
    ? {a: edge.from, b: edge.to, ax: edge.fromX, bx: edge.toX, bends: []}
    : {a: edge.to, b: edge.from, ax: edge.toX, bx: edge.fromX, bends: []});
  assignLayers(cells, forward);
  addBends(cells, forward);
  const layers = [];
  cells.forEach((cell) => { (layers[cell.layer] = layers[cell.layer] || []).push(cell); });
  for (let i = 0; i < layers.length; ++i) layers[i] = layers[i] || [];
  layers.forEach((layer) => layer.forEach((cell, i) => { cell.x = i; }));
  for (let sweep = 0; sweep < kSweeps; ++sweep) eachLayer(layers, sweep % 2 === 0, sortLayer);
  layers.forEach(pack);
  for (let sweep = 0; sweep < kSweeps; ++sweep) eachLayer(layers, sweep % 2 === 0, straighten);
  return finish(cells, layers, forward, edges);
}

function assignLayers(cells, edges) {
  const into = cells.map(() => []), out = cells.map(() => []);
  edges.forEach((edge) => { into[edge.b].push(edge.a); out[edge.a].push(edge.b); });
  const below = cells.some((cell) => cell.end < 0) ? 1 : 0;
  let last = 0;
  cells.forEach((cell, i) => {
    if (cell.end < 0) return;
    cell.layer = into[i].reduce((layer, from) => Math.max(layer, cells[from].layer + 1), below);
    last = Math.max(last, cell.layer);
  });
  cells.forEach((cell, i) => {
    if (cell.end > 0) cell.layer = last;
    else if (cell.end === 0 && into[i].length === 0 && out[i].length > 0)
      cell.layer = Math.max(below, Math.min(...out[i].map((to) => cells[to].layer)) - 1);
  });
}

function addBends(cells, edges) {
  const link = (above, aboveX, below, belowX) => {
    above.below.push({cell: below, offset: belowX - aboveX});
    below.above.push({cell: above, offset: aboveX - belowX});
  };
  edges.forEach((edge) => {
    let at = cells[edge.a], x = edge.ax;
    const last = cells[edge.b];
    if (last.layer - at.layer > kMaxBends) return;
    for (let layer = at.layer + 1; layer < last.layer; ++layer) {
      const bend = {width: kBendWidth, height: 0, end: 0, layer, x: 0, above: [], below: []};
      cells.push(bend);
      edge.bends.push(bend);
      link(at, x, bend, 0);
      at = bend;
      x = 0;
    }
    link(at, x, last, edge.bx);
  });
}

function eachLayer(layers, downward, visit) {
  for (let i = 0; i < layers.length; ++i) visit(layers[downward ? i : layers.length - 1 - i], downward);
}

function sortLayer(layer, downward) {
  layer.forEach((cell) => {
    const links = downward ? cell.above : cell.below;
    cell.key = links.length === 0 ? cell.x : links.reduce((sum, link) => sum + link.cell.x, 0) / links.length;
  });
  layer.sort((a, b) => a.key - b.key);
  layer.forEach((cell, i) => { cell.x = i; });
}

const gap = (left, right) => (left.width + right.width) / 2 + (left.height + right.height === 0 ? 4 : kGapX);

function pack(layer) {
  let x = 0;
  layer.forEach((cell, i) => { x += i > 0 ? gap(layer[i - 1], cell) : 0; cell.x = x; });
  layer.forEach((cell) => { cell.x -= x / 2; });
}

// Pushing from the left and from the right both keep the order and the gaps, and so does the mean of the two.
function straighten(layer, downward) {
  const wish = layer.map((cell) => {
    const links = downward ? cell.above : cell.below;
    if (links.length === 0) return cell.x;
    return links.reduce((sum, link) => sum + link.cell.x + link.offset, 0) / links.length;
  });
  const left = wish.slice(), right = wish.slice();
  for (let i = 1; i < layer.length; ++i) left[i] = Math.max(left[i], left[i - 1] + gap(layer[i - 1], layer[i]));
  for (let i = layer.length - 2; i >= 0; --i) right[i] = Math.min(right[i], right[i + 1] - gap(layer[i], layer[i + 1]));
  layer.forEach((cell, i) => { cell.x = (left[i] + right[i]) / 2; });
}

function finish(cells, layers, forward, edges) {
  let leftmost = Infinity, rightmost = -Infinity, y = 0;
  cells.forEach((cell) => {
    leftmost = Math.min(leftmost, cell.x - cell.width / 2);
    rightmost = Math.max(rightmost, cell.x + cell.width / 2);
  });
  const tops = [], bottoms = [];
  layers.forEach((layer) => {
    const height = layer.reduce((most, cell) => Math.max(most, cell.height), 0);
    tops.push(y);
    bottoms.push(y + height);
    y += height + (layer.every((cell) => cell.height === 0) ? kGapY / 2 : kGapY);
  });
  const top = (cell) => tops[cell.layer] + (bottoms[cell.layer] - tops[cell.layer] - cell.height) / 2;
  const points = forward.map((edge, i) => {
    const a = cells[edge.a], b = cells[edge.b], ax = a.x + edge.ax - leftmost, bx = b.x + edge.bx - leftmost;
    const path = [[ax, top(a) + a.height], [ax, bottoms[a.layer]]];
    edge.bends.forEach((bend) => path.push([bend.x - leftmost, tops[bend.layer]], [bend.x - leftmost, bottoms[bend.layer]]));
    path.push([bx, tops[b.layer]], [bx, top(b)]);
    return edges[i].from <= edges[i].to ? path : path.reverse();
  });
  const places = cells.slice(0, cells.length).map((cell) => ({x: cell.x - leftmost, y: top(cell)}));
  return {places, points, width: Math.max(0, rightmost - leftmost), height: Math.max(0, bottoms.length ? bottoms[bottoms.length - 1] : 0)};
}
