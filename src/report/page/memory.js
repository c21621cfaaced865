// Memory over time: the curve of bytes alive while each node runs, and under it from where to where each piece of memory lives.
const kLeft = 70, kRight = 40, kCurve = 190, kRowsWithNames = 100;

const timeline = byId("timeline");
let range = null;  // [first, last] place shown

function startMemory() {
  if (!graph.memory || nodes.length === 0) return dropSection("memory");
  const {bytes, bars, plan_bytes: plan} = graph.memory;
  byId("memory-hint").textContent = (bytes
    ? "Above, the bytes alive while each node runs; below, how long each piece of memory is needed (views and in-place results share one). Red: alive at the peak."
    : "How many values are alive while each node runs (with input shapes the report shows bytes); below, how long each is needed.")
    + " Drag over the curve to zoom in on a part.";
  document.querySelectorAll("input[name=gantt]").forEach((choice) => { choice.parentElement.hidden = !bytes; });
  if (bytes) byId("packed-choice").append(` (${formatBytes(plan)}, ${bars.length} storages)`);
  range = [0, nodes.length - 1];
  document.querySelectorAll("input[name=gantt]").forEach((choice) => choice.addEventListener("change", drawMemory));
  byId("unzoom").addEventListener("click", () => { range = [0, nodes.length - 1]; drawMemory(); });
  window.addEventListener("resize", drawMemory);
  onChoose((node) => timeline.querySelectorAll(".live").forEach((bar) => bar.classList.toggle("chosen", !!node && bar.dataset.node === node.name)));
  drawMemory();
}

const amount = (value) => graph.memory.bytes ? formatBytes(value) : `${Math.round(value)}`;

// Round amounts for the axis: at most five.
function ticks(most) {
  let step = 1;
  while (most / step > 5) step *= 2;
  const values = [];
  for (let value = 0; value <= most; value += step) values.push(value);
  return values;
}

function drawMemory() {
  const packed = document.querySelector("input[name=gantt]:checked").value === "packed";
  const width = Math.max(400, timeline.clientWidth), [begin, end] = range;
  const x = (place) => kLeft + (place - begin) / (end - begin + 1) * (width - kLeft - kRight);
  byId("unzoom").hidden = begin === 0 && end === nodes.length - 1;
  const curve = drawCurve(width, x, packed);
  timeline.replaceChildren(curve, ...(packed ? [] : [drawRows(width, x)]));
}

function peakLine(x, height) {
  const [begin, end] = range, place = peak.node.place;
  if (place < begin || place > end) return [];
  const at = (x(place) + x(place + 1)) / 2;
  return [drawn("line", {class: "peak-line", x1: at, x2: at, y1: 0, y2: height})];
}

function drawCurve(width, x, packed) {
  const {curve, bars, plan_bytes: plan} = graph.memory, [begin, end] = range;
  const height = packed ? 460 : kCurve, most = Math.max(1, packed ? Math.max(plan, peak.size) : peak.size);
  const y = (size) => height - 22 - size / most * (height - 52);
  const svg = drawn("svg", {id: "curve", width, height});
  ticks(most).forEach((size) => svg.append(drawn("line", {class: "grid", x1: kLeft, x2: width - kRight, y1: y(size), y2: y(size)}),
    drawn("text", {x: kLeft - 6, y: y(size) + 4, "text-anchor": "end"}, amount(size))));
  if (packed) {
    bars.forEach((bar) => {
      const [, from, to, size, offset] = bar;
      if (to >= begin && from <= end && offset >= 0) svg.append(drawBar(bar, x, y(offset + size), Math.max(1, y(offset) - y(offset + size))));
    });
  }
  let line = "";
  for (let place = begin; place <= end; ++place) line += `${line ? "L" : "M"}${x(place).toFixed(1)} ${y(curve[place]).toFixed(1)}H${x(place + 1).toFixed(1)}`;
  if (!packed) svg.append(drawn("path", {class: "area", d: `${line}V${y(0)}H${x(begin)}Z`}));
  svg.append(drawn("path", {class: "curve", d: line}), ...peakLine(x, height - 22));
  if (peak.node.place >= begin && peak.node.place <= end) {
    const at = (x(peak.node.place) + x(peak.node.place + 1)) / 2, right = at < width * 0.7;
    svg.append(drawn("text", {id: "peak", class: "peak-label", x: right ? at + 8 : at - 8, y: 14, "text-anchor": right ? "start" : "end"},
      `peak ${peak.text} at ${peak.node.name}`));
  }
  const names = Math.min(5, end - begin);
  for (let i = 0; i <= names; ++i) {
    const place = Math.round(begin + (end - begin) * i / Math.max(1, names));
    svg.append(drawn("text", {x: (x(place) + x(place + 1)) / 2, y: height - 7, "text-anchor": "middle"}, cut(nodes[place].name, 22)));
  }
  follow(svg, width, height, x);
  return svg;
}

function drawBar(bar, x, y, height) {
  const [base, from, to, size] = bar, [begin, end] = range, node = nodes[base];
  const left = x(Math.max(from, begin)), right = x(Math.min(to, end) + 1);
  const atPeak = from <= peak.node.place && peak.node.place <= to;
  const made = drawn("rect", {class: "live" + (atPeak ? " at-peak" : ""), x: left, y, height, width: Math.max(1, right - left)},
    drawn("title", {}, `${node.name}: ${amount(size)}, alive ${nodes[from].name} … ${nodes[to].name}\n${node.tensor}`));
  made.dataset.node = node.name;
  made.addEventListener("click", () => choose(node));
  return made;
}

// The row of each bar: one of its own while there are few, else the first that is free again.
function rowsOf(bars) {
  if (bars.length <= kRowsWithNames) return bars.map((_, row) => row);
  const ends = [];
  return bars.map(([, from, to]) => {
    let row = ends.findIndex((end) => end < from);
    if (row < 0) row = ends.length;
    ends[row] = to;
    return row;
  });
}

function drawRows(width, x) {
  const [begin, end] = range;
  const bars = graph.memory.bars.filter(([, from, to]) => to >= begin && from <= end);
  const rows = rowsOf(bars), named = bars.length <= kRowsWithNames, count = 1 + Math.max(-1, ...rows);
  const step = named || count <= 60 ? 17 : 6, height = count * step + 12;
  const svg = drawn("svg", {id: "rows", width, height});
  bars.forEach((bar, i) => {
    const y = 6 + rows[i] * step;
    svg.append(drawBar(bar, x, y, step - 2));
    if (!named) return;
    const node = nodes[bar[0]], right = x(Math.min(bar[2], end) + 1), left = x(Math.max(bar[1], begin));
    const label = `${cut(node.name, 28)} ${graph.memory.bytes ? amount(bar[3]) : ""}`, room = label.length * 6.4;
    const beside = right + room < width ? {x: right + 5, "text-anchor": "start"} : left - room > 0 ? {x: left - 5, "text-anchor": "end"} : {x: left + 5, "text-anchor": "start"};
    svg.append(drawn("text", {class: "name", y: y + 11, ...beside}, label));
  });
  svg.append(...peakLine(x, height));
  return svg;
}

// Reads out the curve under the pointer; a drag zooms.
function follow(svg, width, height, x) {
  const [begin, end] = range, cross = drawn("line", {class: "cross", y1: 0, y2: height, visibility: "hidden"}), shade = drawn("rect", {class: "range", y: 0, height, width: 0});
  svg.append(shade, cross);
  let from = null;
  const placeAt = (event) => {
    const at = (event.clientX - svg.getBoundingClientRect().x - kLeft) / (width - kLeft - kRight);
    return Math.min(end, Math.max(begin, begin + Math.floor(at * (end - begin + 1))));
  };
  svg.addEventListener("pointerdown", (event) => { from = placeAt(event); });
  svg.addEventListener("pointermove", (event) => {
    const place = placeAt(event), middle = (x(place) + x(place + 1)) / 2;
    for (const end of ["x1", "x2"]) cross.setAttribute(end, middle);
    cross.setAttribute("visibility", "visible");
    byId("reading").textContent = `${nodes[place].name}: ${amount(graph.memory.curve[place])}`;
    if (from === null) return;
    shade.setAttribute("x", x(Math.min(from, place)));
    shade.setAttribute("width", x(Math.max(from, place) + 1) - x(Math.min(from, place)));
  });
  svg.addEventListener("pointerleave", () => { cross.setAttribute("visibility", "hidden"); byId("reading").textContent = ""; });
  svg.addEventListener("pointerup", (event) => {
    const to = placeAt(event), [a, b] = [Math.min(from, to), Math.max(from, to)];
    if (from !== null && b - a >= 3) { range = [a, b]; drawMemory(); }
    from = null;
  });
}
