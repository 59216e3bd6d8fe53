// One label: votes, evidence, the row, and similar rows

// All text goes through textContent: whatever is in a cell, it is shown and nothing else
function add(parent, tag, properties = {}, attributes = {}) {
  const element = Object.assign(document.createElement(tag), properties);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return parent.appendChild(element);
}

const percent = (share) => {
  const value = 100 * share;
  return `${value > 0 && value < 9.95 ? value.toFixed(1) : Math.round(value)}%`;
};

function addBar(parent, share, kind) {
  const bar = add(parent, "span", { className: "bar" });
  add(bar, "i", { className: kind }).style.width = `${100 * share}%`;
}

class Detail {
  constructor(data, place) {
    this.data = data;
    this.place = place;
    this.byNumber = new Map(data.rows.map((item) => [String(item.row), item.cells]));
  }

  addCell(parent, column, value) {
    const { kind } = this.data.columns[column];
    if (value === null) add(parent, "span", { className: "gap", textContent: "gap" });
    else if (kind === "picture" && Object.hasOwn(this.data.pictures, value)) {
      add(parent, "img", { src: this.data.pictures[value], alt: value });
    } else if (/^https?:\/\//i.test(value)) {
      add(parent, "a", { href: value, textContent: value, rel: "noopener noreferrer", target: "_blank" });
    } else parent.append(value);
  }

  addClaims(item) {
    const { classes, target } = this.data;
    const votes = new Map(item.votes);
    const claims = add(this.place, "div", { className: "claims" });
    const names = item.given === item.suggested ? [["given", "Given and suggested"]] : [["given", "Given"], ["suggested", "Suggested"]];
    for (const [kind, word] of names) {
      const claim = add(claims, "div", { className: "claim" });
      add(claim, "small", { textContent: `${word} ${target}` });
      add(claim, "b", { className: kind, textContent: classes[item[kind]] });
      add(claim, "small", { textContent: `${percent(votes.get(item[kind]) ?? 0)} of the votes` });
    }
    const shown = add(this.place, "div", { className: "votes" });
    for (const [position, share] of item.votes) {
      const kind = position === item.given ? "given" : position === item.suggested ? "suggested" : "";
      const vote = add(shown, "div", { className: "vote" });
      add(vote, "span", { textContent: classes[position] });
      addBar(vote, share, kind);
      add(vote, "span", { textContent: percent(share) });
    }
  }

  usual(column, position) {
    const usual = this.data.columns[column].usual?.[position];
    if (!usual?.length) return "–";
    if (!Array.isArray(usual[0])) { // quartiles of numbers, or of dates
      const [low, middle, high] = usual.map((value) => (typeof value === "number" ? String(+value.toPrecision(4)) : value));
      return low === high ? middle : `${middle} (${low} to ${high})`;
    }
    return usual.map(([name, share]) => `${name} ${percent(share)}`).join(", ");
  }

  addLooks(item) {
    const { classes, columns } = this.data;
    if (!item.looks.length) return;
    add(this.place, "h3", { textContent: "Evidence" });
    const table = add(add(this.place, "div", { className: "scroll" }), "table", { className: "looks" });
    const head = add(add(table, "thead"), "tr");
    const other = item.given === item.suggested ? [] : [item.suggested];
    const heads = ["column", "this row", `usual for ${classes[item.given]}`, ...other.map((one) => `usual for ${classes[one]}`)];
    for (const text of [...heads, "supports"]) add(head, "th", { textContent: text, scope: "col" });
    const most = Math.max(...item.looks.map(([, weight]) => Math.abs(weight)));
    const body = add(table, "tbody");
    for (const [column, weight] of item.looks) {
      const line = add(body, "tr");
      add(line, "th", { textContent: columns[column].name, scope: "row" });
      this.addCell(add(line, "td"), column, item.cells[column]);
      for (const position of [item.given, ...other]) add(line, "td", { textContent: this.usual(column, position) });
      const kind = weight > 0 ? "suggested" : "given";
      const pull = add(add(line, "td"), "div", { className: "pull" },
        { role: "img", "aria-label": `supports ${classes[item[kind]]}, ${percent(Math.abs(weight))} of the votes` });
      const sides = [add(pull, "span"), add(pull, "span")];
      add(sides[weight > 0 ? 1 : 0], "i", { className: kind }).style.width = `${(100 * Math.abs(weight)) / most}%`;
    }
  }

  addRow(item) {
    add(this.place, "h3", { textContent: "The row" });
    const list = add(this.place, "dl", { className: "row" });
    this.data.columns.forEach(({ name, kind }, column) => {
      add(list, "dt", { textContent: name });
      this.addCell(add(list, "dd", { className: kind }), column, item.cells[column]);
    });
  }

  addSimilar(item) {
    const { classes, columns } = this.data;
    if (!item.similar.some((rows) => rows.length)) return;
    const looked = item.looks.map(([column]) => column);
    const isShort = ({ kind }) => kind === "picture" || (columns.length <= 10 && (kind === "number" || kind === "text"));
    const shown = [...looked, ...[...columns.keys()].filter((column) => !looked.includes(column) && isShort(columns[column]))];
    add(this.place, "h3", { textContent: "Similar rows with reliable labels" });
    const table = add(add(this.place, "div", { className: "scroll" }), "table", { className: "like" });
    const head = add(add(table, "thead"), "tr");
    for (const text of [this.data.target, "row", ...shown.map((column) => columns[column].name)]) {
      add(head, "th", { textContent: text, scope: "col" });
    }
    const body = add(table, "tbody");
    const addLine = (number, cells, position, kind) => {
      const line = add(body, "tr", { className: kind === "this" ? kind : "" });
      add(line, "th", { textContent: kind === "this" ? "this one" : classes[position], className: kind, scope: "row" });
      add(line, "td", { textContent: number });
      for (const column of shown) {
        const same = kind !== "this" && cells[column] === item.cells[column];
        this.addCell(add(line, "td", { className: same ? "same" : "" }), column, cells[column]);
      }
    };
    addLine(item.row, item.cells, item.given, "this");
    const sides = item.given === item.suggested ? ["given"] : ["given", "suggested"];
    sides.forEach((kind, side) => item.similar[side].forEach((number) =>
      addLine(number, this.data.others[number] ?? this.byNumber.get(String(number)), item[kind], kind)));
  }
}
