// A table that sorts by a click on a column and filters by text. Only the rows in sight are in the document, so that thousands
// cost nothing.
//
//   columns: [{title, get(row), format(value)?, number?, cell(row)?}]; choose(row) is called on a click.
const kRowHeight = 26;

function makeTable(place, {columns, rows, choose: pick = () => {}, placeholder = "filter"}) {
  const filter = element("input", {type: "search", placeholder});
  const count = element("span", {class: "count"});
  const heads = columns.map((column, i) => element("th", {class: column.number ? "number" : "", onclick: () => sortBy(i)}, column.title));
  const body = element("tbody"), above = element("tbody"), below = element("tbody");
  const frame = element("div", {class: "table"}, element("table", {}, element("thead", {}, element("tr", {}, ...heads)), above, body, below));
  place.append(element("div", {class: "bar"}, filter, count), frame);
  const texts = rows.map((row) => columns.map((column) => String(column.get(row))).join(" ").toLowerCase());
  let shown = rows.map((_, i) => i), sorted = -1, up = false, current = null;

  function sortBy(column) {
    up = sorted === column ? !up : !columns[column].number;
    sorted = column;
    heads.forEach((head, i) => { head.classList.toggle("sorted", i === column); head.classList.toggle("up", i === column && up); });
    update();
  }
  function update() {
    const words = filter.value.toLowerCase().split(/\s+/).filter((word) => word);
    shown = rows.map((_, i) => i).filter((i) => words.every((word) => texts[i].includes(word)));
    if (sorted >= 0) {
      const {get, number} = columns[sorted], keys = rows.map(get), sign = up ? 1 : -1;
      shown.sort((a, b) => sign * (number ? keys[a] - keys[b] : keys[a] < keys[b] ? -1 : keys[a] > keys[b] ? 1 : 0) || a - b);
    }
    count.textContent = shown.length === rows.length ? `${rows.length} rows` : `${shown.length} of ${rows.length} rows`;
    frame.scrollTop = 0;
    draw();
  }
  function spacer(part, amount) {
    part.replaceChildren(...(amount > 0 ? [element("tr", {}, element("td", {colspan: columns.length, style: `height: ${amount * kRowHeight}px; border: 0`}))] : []));
  }
  function draw() {
    const from = Math.max(0, Math.floor(frame.scrollTop / kRowHeight) - 10), to = Math.min(shown.length, from + 60);
    spacer(above, from);
    spacer(below, shown.length - to);
    body.replaceChildren(...shown.slice(from, to).map((i) => {
      const row = rows[i];
      return element("tr", {class: current !== null && row === current ? "chosen" : "", onclick: () => pick(row)}, ...columns.map((column) => {
        const value = column.get(row), text = column.format ? column.format(value) : String(value);
        return element("td", {class: column.number ? "number" : "", title: text}, column.cell ? column.cell(row) : text);
      }));
    }));
  }
  frame.addEventListener("scroll", draw);
  filter.addEventListener("input", update);
  update();
  return {mark(row) { current = row; draw(); }};
}
