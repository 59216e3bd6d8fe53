"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const tip = document.body.appendChild(Object.assign(document.createElement("div"), { id: "tip", hidden: true }));
  const hidden = new Set();
  const percent = (share) => `${+(100 * share).toFixed(2)}%`;
  const colour = (position) => data.colours[position % data.colours.length];
  const dashes = ["", "7 3", "2 3", "9 3 2 3"];
  const shapes = [
    (x, y, r) => `M${x - r},${y}a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0`,
    (x, y, r) => `M${x - r},${y - r}h${2 * r}v${2 * r}h${-2 * r}z`,
    (x, y, r) => `M${x},${y - 1.2 * r}l${1.2 * r},${2.2 * r}h${-2.4 * r}z`,
    (x, y, r) => `M${x},${y - 1.3 * r}l${1.3 * r},${1.3 * r}l${-1.3 * r},${1.3 * r}l${-1.3 * r},${-1.3 * r}z`,
    (x, y, r) => `M${x},${y + 1.2 * r}l${1.2 * r},${-2.2 * r}h${-2.4 * r}z`,
  ];
  const algorithms = data.algorithms.map((name, position) => ({
    name,
    colour: data.marked.includes(name) ? colour(data.marked.indexOf(name)) : "#8c8c8c",
    shape: shapes[position % shapes.length],
    dash: dashes[Math.floor(position / shapes.length) % dashes.length],
  }));

  function draw(parent, tag, attributes, text) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text !== undefined) element.textContent = text;
    return parent.appendChild(element);
  }

  function add(parent, tag, properties = {}) {
    return parent.appendChild(Object.assign(document.createElement(tag), properties));
  }

  // Write a name, with its middle left out if it is longer than the room in pixels; isolated, so that one that
  // is written from right to left does not turn what follows
  function drawName(parent, attributes, name, room, after = "") {
    const letters = [...name];
    const element = draw(parent, "text", attributes, `\u2068${name}\u2069${after}`);
    for (let kept = letters.length - 2; element.getComputedTextLength() > room && kept > 2; kept -= 1) {
      const end = Math.floor(kept / 3);
      const short = letters.slice(0, kept - end).join("") + "…" + letters.slice(letters.length - end).join("");
      element.textContent = `\u2068${short}\u2069${after}`;
    }
    if (!element.textContent.includes(name)) draw(element, "title", {}, name);
  }

  // A round step that gives about as many ticks as wanted
  function ticks(low, high, wanted) {
    const rough = (high - low) / wanted || 1;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999);
    const found = [];
    for (let value = Math.ceil(low / step - 1e-9) * step; value <= high + step * 1e-9; value += step) found.push(value);
    return { values: found, digits: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
  }

  function showTip(event, title, lines) {
    tip.replaceChildren(Object.assign(document.createElement("b"), { textContent: title }));
    for (const [name, value, paint] of lines) {
      const line = add(tip, "div");
      add(line, "span", { textContent: name }).style.color = paint ?? "";
      add(line, "span", { textContent: value });
    }
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8))}px`;
    tip.style.top = `${Math.max(4, Math.min(event.clientY + 14, innerHeight - box.height - 8))}px`;
  }

  // A figure as wide as its column, one unit a pixel, so that text keeps its size
  function frame(parent, title, label) {
    const figure = add(parent, "figure", { className: "chart" });
    if (title) add(figure, "figcaption", { textContent: title });
    const svg = draw(figure, "svg", { role: "img", "aria-label": label ?? title });
    svg.addEventListener("pointerleave", () => (tip.hidden = true));
    return { svg, width: Math.max(240, figure.clientWidth) };
  }

  // One chart of lines: series of values at shared places; empty places are gaps
  function lineChart(parent, { title, label, series, places, placeText, digits, height, invert, low, high, marks, xTitle }) {
    const { svg, width } = frame(parent, title, label);
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const box = { left: 40, right: width - 12, top: 8, bottom: height - (xTitle ? 36 : 22) };
    const values = series.flatMap((one) => one.values).filter((value) => value !== null);
    if (!values.length) return;
    let from = low ?? Math.min(...values), to = high ?? Math.max(...values);
    const slack = (to - from) * 0.06 || 0.02;
    if (low === undefined) from -= slack;
    if (high === undefined) to += slack;
    const last = places[places.length - 1], first = places[0];
    const x = (place) => (last === first ? (box.left + box.right) / 2
      : box.left + 8 + ((place - first) / (last - first)) * (box.right - box.left - 16));
    const y = (value) => {
      const share = (value - from) / (to - from);
      return invert ? box.top + share * (box.bottom - box.top) : box.bottom - share * (box.bottom - box.top);
    };
    const scale = ticks(from, to, height / 45);
    for (const value of scale.values) {
      draw(svg, "line", { class: "grid", x1: box.left, x2: box.right, y1: y(value), y2: y(value) });
      draw(svg, "text", { x: box.left - 5, y: y(value) + 4, "text-anchor": "end" }, value.toFixed(scale.digits));
    }
    const shown = places.length > 8 ? ticks(first, last, 5).values : places;
    let free = -Infinity;  // where a number does not touch the one before
    for (const place of shown) {
      if (x(place) < free) continue;
      free = x(place) + 36;
      draw(svg, "text", { x: x(place), y: box.bottom + 15, "text-anchor": "middle" }, placeText(place));
    }
    if (xTitle) draw(svg, "text", { x: (box.left + box.right) / 2, y: height - 6, "text-anchor": "middle" }, xTitle);
    for (const one of series) {
      let path = "", pen = "M";
      one.values.forEach((value, position) => {
        if (value === null) { pen = "M"; return; }
        path += `${pen}${x(places[position]).toFixed(1)},${y(value).toFixed(1)}`;
        pen = "L";
      });
      draw(svg, "path", { class: "line", d: path, style: `stroke:${one.colour}`, "stroke-dasharray": one.dash ?? "" });
      if (marks) one.values.forEach((value, position) => {
        if (value === null) return;
        draw(svg, "path", { class: "mark", d: one.shape(x(places[position]), y(value), 4), style: `fill:${one.colour}` });
      });
    }
    const guide = draw(svg, "line", { class: "guide", y1: box.top, y2: box.bottom, visibility: "hidden" });
    svg.addEventListener("pointerleave", () => guide.setAttribute("visibility", "hidden"));
    svg.addEventListener("pointermove", (event) => {
      const area = svg.getBoundingClientRect();
      const at = ((event.clientX - area.left) / area.width) * width;
      const distance = places.map((place) => Math.abs(x(place) - at));
      const position = distance.indexOf(Math.min(...distance));
      guide.setAttribute("x1", x(places[position]));
      guide.setAttribute("x2", x(places[position]));
      guide.setAttribute("visibility", "visible");
      const lines = series.filter((one) => one.values[position] !== null && one.values[position] !== undefined)
        .map((one) => [one.name, one.values[position], one.colour])
        .sort((a, b) => (invert ? a[1] - b[1] : b[1] - a[1]))
        .map(([name, value, paint]) => [name, value.toFixed(digits), paint]);
      showTip(event, `${title ? `${title}, ` : ""}${placeText(places[position])}`, lines);
    });
  }

  // Algorithms along an axis of average ranks, bars over groups that don't differ
  function rankPlot(parent, { title, ranks, groups }) {
    const names = algorithms.filter((one) => one.name in ranks).sort((a, b) => ranks[a.name] - ranks[b.name]);
    const { svg, width } = frame(parent, title, `Rank plot, ${title}`);
    const longest = Math.max(...names.map((one) => one.name.length)) + 6;  // with its rank
    const margin = Math.min(0.35 * width, Math.max(112, 7 * longest + 20));
    const half = Math.ceil(names.length / 2);
    const bars = 34 + groups.length * 9;
    const height = bars + half * 17 + 10;
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const x = (rank) => margin + ((rank - 1) / Math.max(1, names.length - 1)) * (width - 2 * margin);
    draw(svg, "line", { class: "axis", x1: x(1), x2: x(names.length), y1: 22, y2: 22 });
    const step = Math.ceil(20 / (x(2) - x(1)));  // numbers that don't touch
    for (let rank = 1; rank <= names.length; rank += 1) {
      draw(svg, "line", { class: "axis", x1: x(rank), x2: x(rank), y1: 18, y2: 22 });
      if ((rank - 1) % step === 0) draw(svg, "text", { x: x(rank), y: 13, "text-anchor": "middle" }, rank);
    }
    names.forEach((one, position) => {
      const left = position < half;
      const row = left ? position : names.length - 1 - position;
      const level = bars + 8 + row * 17, end = left ? margin - 8 : width - margin + 8;
      const place = x(ranks[one.name]);
      draw(svg, "path", { class: "line", d: `M${place},22V${level}H${end}`, style: `stroke:${one.colour};stroke-width:1.5` });
      drawName(svg, { class: "name", x: end + (left ? -4 : 4), y: level + 4, "text-anchor": left ? "end" : "start" },
        one.name, margin - 14, ` ${ranks[one.name].toFixed(2)}`);
    });
    groups.forEach((group, position) => {
      const places = group.map((name) => x(ranks[name]));
      const level = 32 + position * 9;
      draw(svg, "line", { class: "bar", x1: Math.min(...places) - 3, x2: Math.max(...places) + 3, y1: level, y2: level });
    });
  }

  function scatter(parent, points, label) {
    const { svg, width } = frame(parent, "", label);
    const height = Math.min(width, 480);
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const values = points.flatMap((point) => [point.ours, point.published]);
    if (!values.length) return;
    const low = Math.max(0, Math.min(...values) - 0.04), high = Math.min(1.02, Math.max(...values) + 0.04);
    const box = { left: 44, right: width - 10, top: 10, bottom: height - 38 };
    const x = (value) => box.left + ((value - low) / (high - low)) * (box.right - box.left);
    const y = (value) => box.bottom - ((value - low) / (high - low)) * (box.bottom - box.top);
    const clip = draw(draw(svg, "defs", {}), "clipPath", { id: "scatter-area" });
    draw(clip, "rect", { x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top });
    const area = draw(svg, "g", { "clip-path": "url(#scatter-area)" });
    draw(area, "path", { class: "band",
      d: `M${x(low)},${y(low + 0.03)}L${x(high)},${y(high + 0.03)}V${y(high - 0.03)}L${x(low)},${y(low - 0.03)}z` });
    draw(area, "line", { class: "axis", x1: x(low), x2: x(high), y1: y(low), y2: y(high) });
    const scale = ticks(low, high, 6);
    for (const value of scale.values) {
      draw(svg, "line", { class: "grid", x1: box.left, x2: box.right, y1: y(value), y2: y(value) });
      draw(svg, "text", { x: box.left - 5, y: y(value) + 4, "text-anchor": "end" }, value.toFixed(scale.digits));
      draw(svg, "text", { x: x(value), y: box.bottom + 15, "text-anchor": "middle" }, value.toFixed(scale.digits));
    }
    draw(svg, "text", { x: (box.left + box.right) / 2, y: height - 6, "text-anchor": "middle" }, "published");
    draw(svg, "text", { x: 12, y: (box.top + box.bottom) / 2, "text-anchor": "middle",
      transform: `rotate(-90 12 ${(box.top + box.bottom) / 2})` }, "ours");
    for (const point of points) {
      const mark = draw(svg, "path", { class: "mark", d: point.look.shape(x(point.published), y(point.ours), 4.5),
        style: `fill:${point.look.colour};fill-opacity:${point.comparable ? 0.9 : 0.25}` });
      mark.addEventListener("pointermove", (event) => showTip(event, `${point.dataset}, ${point.look.name}`, [
        ["ours", point.ours.toFixed(4)], ["published", point.published.toFixed(4)],
        ["difference", (point.ours - point.published).toFixed(4)],
        ...(point.comparable ? [] : [["other data than the paper's", ""]])]));
      mark.addEventListener("pointerleave", () => (tip.hidden = true));
    }
  }

  // A row of buttons, one of which is on
  function choices(parent, title, options, text, chosen, choose) {
    const row = add(parent, "div", { className: "choices" });
    row.setAttribute("role", "group");
    row.setAttribute("aria-label", title);
    add(row, "span", { textContent: title });
    for (const option of options) {
      const button = add(row, "button", { type: "button", textContent: text(option) });
      button.setAttribute("aria-pressed", option === chosen);
      button.addEventListener("click", () => {
        for (const other of row.querySelectorAll("button")) other.setAttribute("aria-pressed", other === button);
        choose(option);
      });
    }
    return row;
  }

  const visible = () => algorithms.filter((one) => !hidden.has(one.name));
  const state = { comparison: data.noise[0], trace: data.traces[0]?.algorithm, traceNoise: data.noise[0] };

  const charts = {
    ranks(place) {
      lineChart(place, { title: "", label: "Average rank by noise level", places: data.noise, placeText: percent, digits: 2,
        height: 360, invert: true, marks: true, xTitle: data.level,
        series: visible().map((one) => ({ ...one, values: data.ranks[one.name] })) });
    },
    "rank-plots"(place) {
      place.classList.toggle("many", data.algorithms.length > 9);
      for (const plot of data["rank-plots"]) rankPlot(place, plot);
    },
    scores(place) {
      for (const { dataset, means } of data.scores) {
        lineChart(place, { title: dataset, places: data.noise, placeText: percent, digits: 4, height: 200, marks: true,
          invert: data.lowIsBetter, series: visible().map((one) => ({ ...one, values: means[one.name] })) });
      }
    },
    comparison(place) {
      const levels = [...new Set(data.comparison.map((row) => row[2]))];
      choices(place, data.level, levels, percent, state.comparison, (level) => { state.comparison = level; redraw(place); });
      const points = data.comparison.filter((row) => row[2] === state.comparison && !hidden.has(row[1]))
        .map(([dataset, name, , ours, published, comparable]) => (
          { dataset, ours, published, comparable, look: algorithms.find((one) => one.name === name) }));
      scatter(place, points, "Ours against the published macro F1");
    },
    traces(place) {
      const names = [...new Set(data.traces.map((trace) => trace.algorithm))];
      const levels = [...new Set(data.traces.map((trace) => trace.noise))].sort((a, b) => a - b);
      choices(place, "algorithm", names, (name) => name, state.trace, (name) => { state.trace = name; redraw(place); });
      choices(place, data.level, levels, percent, state.traceNoise,
        (level) => { state.traceNoise = level; redraw(place); });
      const lines = data["trace-lines"];
      const key = add(place, "div", { className: "choices" });
      lines.forEach(({ name }, position) => { add(key, "span", { textContent: `— ${name}` }).style.color = colour(position); });
      for (const trace of data.traces) {
        if (trace.algorithm !== state.trace || trace.noise !== state.traceNoise) continue;
        lineChart(place, { title: trace.dataset, places: trace.gain.map((_, position) => position + 1),
          placeText: (iteration) => String(iteration), digits: 4, height: 200, low: 0, high: 1,
          series: lines.map(({ column, name }, position) => ({ name, values: trace[column], colour: colour(position) })) });
      }
    },
  };

  function redraw(place) {
    tip.hidden = true;
    place.replaceChildren();
    charts[place.dataset.chart](place);
  }

  const places = [...document.querySelectorAll("[data-chart]")];
  const legend = document.getElementById("legend");
  for (const one of algorithms) {
    const button = add(legend, "button", { type: "button" });
    button.setAttribute("aria-pressed", true);
    const svg = draw(button, "svg", { viewBox: "0 0 26 12", "aria-hidden": true });
    draw(svg, "path", { class: "line", d: "M1,6H25", style: `stroke:${one.colour}`, "stroke-dasharray": one.dash });
    draw(svg, "path", { class: "mark", d: one.shape(13, 6, 4), style: `fill:${one.colour}` });
    button.append(one.name);
    button.addEventListener("click", () => {
      if (!hidden.delete(one.name)) hidden.add(one.name);
      button.setAttribute("aria-pressed", !hidden.has(one.name));
      places.forEach(redraw);
    });
  }

  // Tables of several noise levels: one level at a time, all of them on paper
  document.body.classList.add("scripted");
  for (const series of document.querySelectorAll(".series")) {
    const tables = [...series.querySelectorAll("figure.table")];
    const levels = [...new Set(tables.map((table) => Number(table.dataset.noise)))];
    const show = (level) => {
      for (const table of tables) table.classList.toggle("current", Number(table.dataset.noise) === level);
    };
    series.prepend(choices(series, data.level, levels, percent, levels[0], show));
    show(levels[0]);
  }

  for (const head of document.querySelectorAll("th")) {
    head.querySelector("button").addEventListener("click", () => {
      const table = head.closest("table"), body = table.tBodies[0], column = head.cellIndex;
      const descending = head.getAttribute("aria-sort") === "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      const value = (row) => {
        const cell = row.cells[column];
        return cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v);
      };
      const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b
        : String(a).localeCompare(String(b), undefined, { numeric: true }));
      const rows = [...body.rows].sort((a, b) => {
        const first = value(a), second = value(b);
        // Empty fields stay at the end
        if (first === "" || second === "") return (first === "") - (second === "");
        return descending ? compare(second, first) : compare(first, second);
      });
      body.replaceChildren(...rows);
    });
  }

  places.forEach(redraw);
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    places.forEach(redraw);
  });
})();
