// What the picture shows while some groups are open. The layout was made with the page, for all groups open: where each box stands from
// left to right, in which row, and the ways of the edges (src/report/layout.h). Here the rows are put one below the other, as high as
// what is in them: a closed group takes a small box in its place, below what it hangs on.
const kHead = 26, kPadding = 14, kRowGap = 34, kPortGap = 22;

function readPart([width, rows, places, ways], id) {
  const boxes = [], edges = [];
  for (let i = 0; i < places.length; i += 4) {
    const [item, row, x, width] = places.slice(i, i + 4);
    boxes.push({item: item < 0 ? groups[-item] : nodes[item], row, left: x, room: width, from: -2, pull: 0});
  }
  for (let i = 0; i < ways.length;) {
    const [source, from, to, fromOffset, toOffset, runs] = ways.slice(i, i += 6), way = [];
    for (; way.length < runs; i += 2) way.push({x: ways[i], rows: ways[i + 1]});
    edges.push({source: nodes[source], from: boxes[from], to: boxes[to], fromOffset, toOffset, way});  // no box: a port
    // A group hangs on the edge from the latest box before it.
    if (to >= 0 && from < to && from > boxes[to].from) Object.assign(boxes[to], {from, pull: toOffset});
    if (from >= 0 && boxes[from].from === -2) boxes[from].pull = fromOffset;
  }
  return {group: groups[id], room: width, rows, boxes, edges};
}
const arrangements = graph.layouts.map((parts) => parts.map(readPart));  // without parameters; with them
const isParameter = (() => {
  const shown = new Set(arrangements[0].flatMap((part) => part.boxes.map((box) => box.item)));
  return (node) => !shown.has(node);
})();

// Stacks the rows of open groups, parents last: how high a group is decides about the rows around it.
function stackRows(parts) {
  for (let i = parts.length; i-- > 0;) if (parts[i].group.open) stackPart(parts[i], parts);
  return parts[0];
}

function stackPart(part, parts) {
  const heights = Array(part.rows).fill(0);
  part.boxes.forEach((box) => {
    box.inner = box.item.items && box.item.open ? parts[box.item.id] : null;
    const text = boxText(box.item);
    box.width = box.inner ? box.room : Math.min(box.room, Math.max(64, text[0].length * 7.4 + 34, text[1].length * 6.5 + 18));
    box.height = box.inner ? box.inner.height : text[1] ? 38 : 26;
    if (!box.item.items) box.width = box.room;
    heights[box.row] = Math.max(heights[box.row], box.height);
  });
  let y = part.group === whole ? kPadding : kHead;
  part.top = heights.map((height, row) => {
    const top = y;
    y += height + (height && heights[row + 1] ? kRowGap : kPortGap);
    return top;
  });
  part.bottom = part.top.map((top, row) => top + heights[row]);
  part.height = part.rows ? part.bottom[part.rows - 1] + (heights[part.rows - 1] ? kPadding : 0) : 0;  // ports stand on the lower side
  part.boxes.forEach((box) => {
    box.x = Math.min(box.left + box.room - box.width, Math.max(box.left, box.left + (box.room - box.width) / 2 + box.pull));
    box.y = (part.top[box.row] + part.bottom[box.row] - box.height) / 2;
  });
}

// The ports of a closed group are as much closer together as it is smaller.
const portOf = ({x, width, room, pull}, offset) => x + width / 2
  + (width === room ? offset : Math.max(6 - width / 2, Math.min(width / 2 - 6, (offset - pull) * width / room)));

function pointsOf({top, bottom, height}, {from, to, fromOffset, toOffset, way}) {
  const points = [];
  let row = 0;
  if (from) {
    const x = portOf(from, fromOffset);
    points.push([x, from.y + from.height], [x, bottom[from.row]]);
    row = from.row + 1;
  } else points.push([way[0].x, 0]);
  way.forEach(({x, rows}) => {
    points.push([x, rows > 0 ? top[row] : bottom[row - 1]]);
    row += rows;
    points.push([x, rows > 0 ? bottom[row - 1] : top[row]]);
  });
  if (to) {
    const x = portOf(to, toOffset);
    points.push([x, top[to.row]], [x, to.y]);
  } else points.push([points[points.length - 1][0], height]);
  return points.filter(([x, y], i) => i === 0 || x !== points[i - 1][0] || y !== points[i - 1][1]);
}

// ---- texts ----
function boxText(item) {
  if (!item.items) return [item.shownName, item.below];
  const dead = item.dead ? ` · ${item.dead} dead` : "";
  return [item.title, `${item.count} nodes` + (item.macs ? ` · ${formatCount(item.macs)}MACs` : "") + dead];
}
