// The overview: how the qualities are spread, and given against suggested labels; a click chooses a filter

function drawOverview(data, choose) {
  drawChart(data, choose);
  drawMatrix(data, choose);
}

function drawChart(data, choose) {
  const width = 640, height = 170, base = height - 22, bins = data.counts[0].length;
  const totals = data.counts[0].map((_, bin) => data.counts.reduce((sum, row) => sum + row[bin], 0));
  const top = Math.sqrt(Math.max(...totals, 1)); // roots, so that the few bad ones are seen beside the many good ones
  document.getElementById("chart").replaceChildren();
  const draw = (parent, tag, attributes, text) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text !== undefined) element.textContent = text;
    return parent.appendChild(element);
  };
  const label = `Labels by quality; ${data.cut === null ? "none is a suspect" : `suspects have up to ${percent(data.cut)}`}`;
  const svg = draw(document.getElementById("chart"), "svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  totals.forEach((count, bin) => {
    const x = (width * bin) / bins, high = count ? Math.max(2, ((base - 14) * Math.sqrt(count)) / top) : 0;
    const low = data.cut !== null && bin / bins <= data.cut;
    draw(svg, "rect", { class: low ? "low" : "all", x: x + 1, y: base - high, width: width / bins - 2, height: high, rx: 1.5 });
    const hit = draw(svg, "rect", { class: "hit", x, y: 0, width: width / bins, height: base });
    draw(hit, "title", {}, `${counted(count, "label")} of ${percent(bin / bins)} to ${percent((bin + 1) / bins)}`);
    hit.addEventListener("click", () => choose({ quality: Math.round((100 * (bin + 1)) / bins) }));
  });
  draw(svg, "line", { x1: 0, x2: width, y1: base, y2: base });
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    draw(svg, "text", { x: width * share, y: height - 6, "text-anchor": share === 0 ? "start" : share === 1 ? "end" : "middle" }, percent(share));
  }
  if (data.cut !== null) {
    draw(svg, "line", { class: "cut", x1: width * data.cut, x2: width * data.cut, y1: 0, y2: base });
    draw(svg, "text", { x: width * data.cut + 5, y: 11 }, "the cut: suspects to the left");
  }
}

function drawMatrix(data, choose) {
  const counts = new Map();
  for (const item of data.rows) {
    const key = `${item.given} ${item.suggested}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  const used = (side) => [...data.classes.keys()].filter((position) => data.rows.some((item) => item[side] === position));
  const across = used("suggested");
  document.getElementById("matrix").replaceChildren();
  const table = add(document.getElementById("matrix"), "table");
  const head = add(add(table, "thead"), "tr");
  add(head, "th", { textContent: "given ↓  suggested →", scope: "col" });
  for (const position of across) add(head, "th", { textContent: data.classes[position], scope: "col" });
  const body = add(table, "tbody");
  for (const given of used("given")) {
    const line = add(body, "tr");
    add(line, "th", { textContent: data.classes[given], scope: "row" });
    for (const suggested of across) {
      const count = counts.get(`${given} ${suggested}`), cell = add(line, "td");
      if (!count) continue;
      const button = add(cell, "button", { type: "button", textContent: count.toLocaleString("en") },
        { "aria-label": `${count} given ${data.classes[given]}, suggested ${data.classes[suggested]}` });
      button.addEventListener("click", () => choose({ given: String(given), suggested: String(suggested) }));
    }
  }
}
