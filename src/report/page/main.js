// Fills in the page: the head, the overview, the tables, the listing; starts the views.
function dropSection(id) { byId(id).remove(); }

function tile(value, what, bad = false) {
  return element("div", {class: "tile" + (bad ? " bad" : "")}, element("b", {}, value), element("span", {}, what));
}

function list(title, rows) {  // rows: [{label, value, part, node?}]
  if (rows.length === 0) return [];
  return [element("div", {class: "list"}, element("h3", {}, title), ...rows.slice(0, 10).map(({label, value, part, node}) => element("div", {class: "row"},
    element("i", {style: `width: ${(100 * part).toFixed(1)}%`}), element("span", {class: "mono", title: label}, node ? linkTo(node) : label), element("span", {}, value))))];
}

const kDeadCounts = [["dead_nodes", "dead node"], ["dead_stores", "dead store"], ["unused_outputs", "unused output"], ["unused_inputs", "unused input"],
  ["no_ops", "no-op"], ["unused_attributes", "unused attribute"], ["unused_modules", "unused module"]];
const plural = (count, what) => `${count} ${what}${count === 1 ? "" : "s"}`;

function startOverview() {
  byId("name").textContent = report.name || "graph";
  const tiles = [tile(report.nodes, `nodes, ${plural(report.inputs, "input")}`)];
  if (report.cost) {
    const least = report.cost.unknown > 0 ? "≥ " : "", why = report.cost.unknown > 0 ? `; not known: ${report.cost.unknown_nodes.join(", ")}` : "";
    tiles.push(tile(least + formatCount(report.cost.total.macs) + "MACs", `${formatCount(report.cost.total.flops)}FLOPs, ${formatBytes(report.cost.total.bytes)} moved${why}`));
    tiles.push(tile(formatBytes(report.cost.total.parameter_bytes), "of parameters"));
    const measured = report.cost.total.measured;
    if (measured) tiles.push(tile(formatSeconds(measured.seconds), `± ${formatSeconds(measured.spread)}, node by node, ${plural(measured.runs, "run")}`));
  }
  const live = report.liveness;
  if (live && live.peak_bytes !== undefined) {
    const lower = live.best_order_bytes < live.peak_bytes ? `; ${formatBytes(live.best_order_bytes)} in a better order` : "";
    const open = live.unknown_nodes && live.unknown_nodes.length > 0, inside = open ? `; not known: inside of ${live.unknown_nodes.join(", ")}` : "";
    tiles.push(tile((open ? "≥ " : "") + formatBytes(live.peak_bytes), `activations at the peak, ${live.peak_bytes_at}${lower}${inside}`));
    tiles.push(tile(formatBytes(live.plan_bytes), `planned in one block; ${formatBytes(live.storage_bytes)} without reuse`));
  } else if (live) tiles.push(tile(live.peak_values, `values at once, at ${live.peak_values_at}`));
  if (report.uses) tiles.push(tile(report.uses.depth, "nodes on the longest path"));
  if (report.dead_code) {
    const found = kDeadCounts.filter(([key]) => report.dead_code[key] > 0).map(([key, what]) => plural(report.dead_code[key], what));
    tiles.push(tile(report.dead_code.findings.length, found.length ? found.join(", ") : "nothing is dead or unused", found.length > 0));
  }
  byId("tiles").append(...tiles);
  const named = new Map(nodes.map((node) => [node.name, node])), top = (rows, key) => Math.max(1, ...rows.map((row) => row[key]));
  const lists = [];
  if (live && live.at_peak) {
    const most = top(live.at_peak, "bytes");
    lists.push(...list("Alive at the peak", live.at_peak.map((row) => ({label: row.node, node: named.get(row.node), value: `${row.tensor} ${formatBytes(row.bytes)}`, part: row.bytes / most}))));
  }
  if (report.cost) {
    const rows = report.cost.nodes.slice().sort((a, b) => b.flops - a.flops), most = top(rows, "flops");
    lists.push(...list("Most operations", rows.map((row) => ({label: row.name, node: named.get(row.name), value: `${formatCount(row.flops)}FLOPs`, part: row.flops / most}))));
  }
  const most = top(report.operators, "count");
  lists.push(...list("Operators", report.operators.map((row) => ({label: row.target, value: row.count, part: row.count / most}))));
  if (report.uses) {
    const used = top(report.uses.most_used, "count");
    lists.push(...list("Most used values", report.uses.most_used.map((row) => ({label: row.node, node: named.get(row.node), value: plural(row.count, "user"), part: row.count / used}))));
  }
  byId("lists").append(...lists);
}

function startFindings() {
  if (!report.dead_code) return dropSection("dead-code");
  const named = new Map(nodes.map((node) => [node.name, node])), rows = report.dead_code.findings;
  if (rows.length === 0) return byId("findings").append(element("p", {class: "hint"}, "None: every node, input and parameter is needed."));
  makeTable(byId("findings"), {rows, placeholder: "filter findings", choose: (row) => { if (named.has(row.name)) choose(named.get(row.name)); }, columns: [
    {title: "kind", get: (row) => row.kind},
    {title: "what", get: (row) => row.name, cell: (row) => element("span", {class: row.kind.startsWith("dead") ? "dead" : ""}, row.name)},
    {title: "bytes", get: (row) => row.bytes, number: true, format: (value) => value ? formatBytes(value) : ""},
    {title: "why", get: (row) => row.text.startsWith(row.name + ": ") ? row.text.slice(row.name.length + 2) : row.text},
  ]});
}

function startNodes() {
  const bytes = (value) => value ? formatBytes(value) : "", count = (value) => value ? formatCount(value) : "";
  const cost = graph.cost ? [{title: "MACs", get: (node) => node.macs, number: true, format: count}, {title: "FLOPs", get: (node) => node.flops, number: true, format: count},
    {title: "moved", get: (node) => node.bytes, number: true, format: bytes}, {title: "parameters", get: (node) => node.parameter_bytes, number: true, format: bytes}] : [];
  const time = graph.cost && graph.cost.seconds ? [{title: "time", get: (node) => node.seconds, number: true, format: (value) => value ? formatSeconds(value) : ""}] : [];
  const memory = graph.memory && graph.memory.bytes ? [{title: "makes", get: (node) => node.held, number: true, format: bytes}] : [];
  const table = makeTable(byId("node-table"), {rows: nodes, placeholder: "filter nodes: any words", choose: (node) => choose(node), columns: [
    {title: "#", get: (node) => node.place, number: true},
    {title: "name", get: (node) => node.name, cell: (node) => element("span", {class: node.dead ? "dead" : ""}, node.name)},
    {title: "op", get: (node) => node.op},
    {title: "target", get: (node) => node.target},
    {title: "tensor", get: (node) => node.tensor},
    {title: "users", get: (node) => node.users.length, number: true},
    {title: "last use", get: (node) => node.last.place, format: (place) => nodes[place].name},
    ...memory, ...cost, ...time,
    {title: "module", get: (node) => node.parent.label},
  ]});
  onChoose((node) => table.mark(node));
}

function startModules() {
  const rows = report.cost ? report.cost.modules : [];
  if (rows.length === 0) return dropSection("modules");
  makeTable(byId("module-table"), {rows, placeholder: "filter modules", columns: [
    {title: "module", get: (row) => row.name},
    {title: "MACs", get: (row) => row.macs, number: true, format: formatCount}, {title: "FLOPs", get: (row) => row.flops, number: true, format: formatCount},
    {title: "moved", get: (row) => row.bytes, number: true, format: formatBytes}, {title: "parameters", get: (row) => row.parameter_bytes, number: true, format: formatBytes},
    {title: "FLOP/B", get: (row) => row.intensity, number: true, format: (value) => value.toFixed(1)},
    ...(rows[0].measured ? [{title: "time", get: (row) => row.measured.seconds, number: true, format: formatSeconds}] : []),
  ]});
}

function startListing() {
  const lines = new Map();
  byId("listing").append(...nodes.map((node) => {
    const line = element("div", {class: node.dead ? "dead" : "", title: node.dead, onclick: () => choose(node)}, node.text);
    lines.set(node, line);
    return line;
  }));
  let marked = null;
  onChoose((node) => {
    if (marked) marked.classList.remove("chosen");
    marked = node ? lines.get(node) : null;
    if (marked) marked.classList.add("chosen");
  });
}

startOverview();
startGraph();
startMemory();
startDominators();
startFindings();
startNodes();
startModules();
startListing();
byId("sections").append(...[...document.querySelectorAll("section")].map((section) => element("a", {href: "#" + section.id}, section.dataset.title)));
