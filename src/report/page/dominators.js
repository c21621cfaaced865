// The dominator tree as text: from every node the child with the largest subtree goes on straight down, the others are indented
// below it. So the indentation stays below log2(nodes), and a chain of any length is one paragraph.
const kChips = 60;

const dominatorOf = (node) => graph.dominator && graph.dominator[node.place] >= 0 ? nodes[graph.dominator[node.place]] : null;

function startDominators() {
  if (!graph.dominator || nodes.length === 0) return dropSection("dominators");
  const children = new Map([[null, []]]), size = new Map([[null, 0]]);
  nodes.forEach((node) => { children.set(node, []); size.set(node, 1); });
  nodes.forEach((node) => children.get(dominatorOf(node)).push(node));
  for (let i = nodes.length; i-- > 0;) size.set(dominatorOf(nodes[i]), size.get(dominatorOf(nodes[i])) + size.get(nodes[i]));
  const heaviest = (node) => children.get(node).reduce((best, child) => !best || size.get(child) > size.get(best) ? child : best, null);

  // Paragraphs in the order in which they are read; a stack holds what is still to be written.
  const paragraphs = [];
  const sides = (node, heavy, depth) => {
    const others = children.get(node).filter((child) => child !== heavy);
    const leaves = others.filter((child) => size.get(child) === 1), trees = others.filter((child) => size.get(child) > 1);
    const below = trees.map((tree) => ({head: tree, depth: depth + 1}));
    if (leaves.length > 0) below.unshift({leaves, depth: depth + 1});
    return below;
  };
  const root = heaviest(null);
  const stack = [{head: root, depth: 0}, ...sides(null, root, -1).reverse()];
  while (stack.length > 0) {
    const {head, leaves, depth} = stack.pop();
    if (leaves) { paragraphs.push({line: leaves, depth, leaves: true}); continue; }
    const line = [];
    let at = head;
    for (; at; at = heaviest(at)) {
      line.push(at);
      const heavy = heaviest(at), below = sides(at, heavy, depth);
      if (below.length === 0) continue;
      if (heavy) stack.push({head: heavy, depth});
      stack.push(...below.reverse());
      break;
    }
    paragraphs.push({line, depth});
  }
  const tree = byId("dominator-tree");
  tree.append(...paragraphs.slice(0, 4000).map(paragraph));
  if (paragraphs.length > 4000) tree.append(element("p", {}, `and ${paragraphs.length - 4000} more lines`));
}

function paragraph({line, depth, leaves}) {
  const made = element("div", {class: "chain", style: `margin-left: ${depth * 22}px`});
  const add = (items, isFirst) => items.forEach((node, i) => {
    if (!isFirst || i > 0) made.append(element("em", {}, leaves ? ", " : " → "));
    made.append(linkTo(node));
  });
  add(line.slice(0, kChips), true);
  if (line.length > kChips) {
    const more = element("button", {onclick: () => { more.remove(); add(line.slice(kChips), false); }}, `and ${line.length - kChips} more`);
    made.append(" ", more);
  }
  return made;
}
