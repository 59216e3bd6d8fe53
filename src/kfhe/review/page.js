// The page: a list of labels, the selected one, and the decisions

const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const HEIGHT = 62; // of an item in the list
const AHEAD = 8; // items drawn above and below what is seen
const NEXT = 400; // number of labels whose error rate is predicted
const ENOUGH = 10; // decisions from which on the share is estimated
const WORDS = { keep: "kept", drop: "drop", unsure: "can't tell" };
const NO_FILTER = { text: "", state: "all", given: "", suggested: "", quality: 100 };

const items = data.rows;
const placeOf = new Map(items.map((item, place) => [item.row, place]));
const decisions = new Map(); // by place in items
const notes = new Map();
const elsewhere = new Map(); // decisions about rows of the table that are not on this page, by row
const undone = [];
const filter = { ...NO_FILTER };
const counted = (number, what) => `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;
const warn = (text) => Object.assign($("warning"), { textContent: text, hidden: !text });
const storage = new Storage(data.key, warn);
const detail = new Detail(data, $("detail"));
let listed = items.map((_, place) => place);
let current = 0; // position in listed

const texts = items.map((item) => [item.row, ...item.cells].join("\n").toLowerCase());

// Decisions

function entryOf(place) {
  const item = items[place], decision = decisions.get(place);
  if (!decision) return null;
  const decided = decision.decision === "keep" ? data.classes[item.given] : decision.decided;
  return {
    row: item.row, digest: item.digest, target: data.target, given: data.classes[item.given],
    decision: decision.decision, decided, note: notes.get(place) ?? "",
  };
}

function keep(place) {
  const note = notes.get(place);
  const entry = entryOf(place) ?? (note ? { row: items[place].row, digest: items[place].digest, note } : null);
  storage.save(items[place].row, entry);
}

// Add an entry of an export, of the storage or of the page itself; false: it belongs to another row
function take(entry) {
  const row = Number(entry.row), place = placeOf.get(row);
  if (place === undefined) {
    if (entry.decision && entry.target === data.target) elsewhere.set(row, { ...entry, row });
    return true;
  }
  const item = items[place];
  if (entry.digest !== item.digest) return false;
  if (entry.note) notes.set(place, entry.note);
  if (!entry.decision) return true;
  const known = entry.decision !== "change" || data.classes.includes(entry.decided);
  if (entry.given !== data.classes[item.given] || !isSound(entry) || !known) return false;
  decisions.set(place, { decision: entry.decision, decided: entry.decided });
  return true;
}

function decide(decision, decided = "") {
  const place = listed[current];
  if (place === undefined) return;
  if (decision === "change" && decided === data.classes[items[place].given]) decision = "keep";
  undone.push({ place, before: decisions.get(place) });
  decisions.set(place, { decision, decided: decision === "change" ? decided : "" });
  keep(place);
  say(`Row ${items[place].row}: ${stateText(place)}. ${decisions.size} of ${items.length} reviewed.`);
  const next = listed.findIndex((other, position) => position > current && !decisions.has(other));
  if (filter.state === "all" || filter.state === "judged") {
    if (next >= 0) current = next;
  } else applyFilter(next >= 0 ? listed[next] : undefined);
  drawAll();
}

function undo() {
  const last = undone.pop();
  if (!last) return say("There is nothing to undo.");
  if (last.before) decisions.set(last.place, last.before);
  else decisions.delete(last.place);
  keep(last.place);
  applyFilter(last.place);
  if (listed[current] !== last.place) clearFilter(last.place);
  say(`Undone: row ${items[last.place].row} is ${stateText(last.place)}.`);
  return drawAll();
}

function stateText(place) {
  const decision = decisions.get(place);
  if (!decision) return "open";
  return decision.decision === "change" ? `→ ${decision.decided}` : WORDS[decision.decision];
}

function say(text) {
  $("live").textContent = text;
}

// Which labels are listed

function applyFilter(wanted = listed[current]) {
  const word = filter.text.trim().toLowerCase();
  listed = [...items.keys()].filter((place) => {
    const item = items[place];
    return (filter.state === "all" || (filter.state === "suspects" ? item.suspect : (filter.state === "judged") === decisions.has(place)))
      && (filter.given === "" || item.given === Number(filter.given))
      && (filter.suggested === "" || item.suggested === Number(filter.suggested))
      && (filter.quality >= 100 || 100 * (item.quality ?? 0.5) <= filter.quality)
      && (!word || texts[place].includes(word) || (notes.get(place) ?? "").toLowerCase().includes(word));
  });
  const place = listed.indexOf(wanted);
  current = place >= 0 ? place : Math.max(0, Math.min(current, listed.length - 1));
}

function setFilter(changes) {
  Object.assign(filter, changes);
  $("search").value = filter.text;
  $("quality").value = filter.quality;
  for (const name of ["state", "given", "suggested"]) $(name).value = filter[name];
  $("quality-text").textContent = filter.quality >= 100 ? "Any quality" : `Up to ${filter.quality}%`;
  applyFilter();
  drawAll();
}

function clearFilter(place) {
  Object.assign(filter, NO_FILTER);
  current = place ?? current;
  listed = [...items.keys()];
  setFilter({});
}

// Drawing

function drawAll() {
  drawList(true);
  drawDetail();
  drawProgress();
}

function drawList(reveal) {
  const list = $("list"), space = $("space");
  space.style.height = `${listed.length * HEIGHT}px`;
  if (reveal) {
    const top = current * HEIGHT;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (top + HEIGHT > list.scrollTop + list.clientHeight) list.scrollTop = top + HEIGHT - list.clientHeight;
  }
  const first = Math.max(0, Math.floor(list.scrollTop / HEIGHT) - AHEAD);
  const last = Math.min(listed.length, Math.ceil((list.scrollTop + list.clientHeight) / HEIGHT) + AHEAD);
  space.replaceChildren();
  for (let position = first; position < last; position++) addItem(space, position);
  if (listed.length && current >= first && current < last) list.setAttribute("aria-activedescendant", `item-${current}`);
  else list.removeAttribute("aria-activedescendant");
  const all = listed.length === items.length;
  $("found").textContent = all ? counted(items.length, "label")
    : `${listed.length.toLocaleString("en")} of ${counted(items.length, "label")}`;
  $("clear").hidden = Object.keys(NO_FILTER).every((name) => String(filter[name]) === String(NO_FILTER[name]));
}

function addItem(space, position) {
  const place = listed[position], item = items[place], decision = decisions.get(place);
  const option = add(space, "div", { className: decision ? "item judged" : "item", id: `item-${position}` }, {
    role: "option", "aria-selected": String(position === current), "aria-posinset": position + 1, "aria-setsize": listed.length,
  });
  option.style.top = `${position * HEIGHT}px`;
  const labels = add(option, "div", { className: "labels" });
  add(labels, "span", { className: decision ? "" : "given", textContent: data.classes[item.given] });
  if (item.given !== item.suggested) {
    labels.append(" → ");
    add(labels, "span", { className: decision ? "" : "suggested", textContent: data.classes[item.suggested] });
  }
  add(option, "div", { className: "number", textContent: `row ${item.row}` });
  const looks = item.looks.filter(([column]) => item.cells[column] !== null).slice(0, 3);
  add(option, "div", { className: "snippet",
    textContent: looks.map(([column]) => `${data.columns[column].name} ${item.cells[column]}`).join(" · ") });
  add(option, "div", { className: `state ${decision?.decision ?? ""}`,
    textContent: decision ? stateText(place) : item.quality === null ? "" : percent(item.quality) });
  option.addEventListener("click", () => open(position));
}

function open(position, reading = true) {
  current = Math.max(0, Math.min(position, listed.length - 1));
  document.body.classList.toggle("reading", reading);
  drawAll();
}

function drawDetail() {
  const place = listed[current], article = $("detail");
  const held = article.contains(document.activeElement) ? document.activeElement.getAttribute("aria-keyshortcuts") : null;
  article.replaceChildren();
  article.scrollTop = 0;
  if (place === undefined) {
    add(article, "p", { className: "empty", textContent: "No label matches. Show all, or change the filter." });
    return;
  }
  const item = items[place];
  const head = add(article, "div", { className: "headline" });
  add(head, "button", { type: "button", className: "back", textContent: "‹ List" }).addEventListener("click", toList);
  add(head, "h2", { textContent: `Row ${item.row}` });
  add(head, "span", { className: "quiet", textContent: `${current + 1} of ${listed.length.toLocaleString("en")} · ${stateText(place)}` });
  detail.addClaims(item);
  addActions(article, place);
  const note = add(article, "textarea", { className: "note", id: "note", rows: 1, placeholder: "Note", value: notes.get(place) ?? "" },
    { "aria-label": "Note", "aria-keyshortcuts": "t" });
  note.addEventListener("input", () => {
    notes.set(place, note.value);
    keep(place);
  });
  detail.addLooks(item);
  detail.addSimilar(item);
  detail.addRow(item);
  if (held) article.querySelector(`[aria-keyshortcuts="${held}"]`)?.focus(); // keep the focus on the same button
}

function addActions(article, place) {
  const item = items[place], decision = decisions.get(place);
  const bar = add(article, "div", { className: "actions" }, { role: "toolbar", "aria-label": "Decide" });
  const addButton = (text, key, act, pressed, className = "") => {
    const button = add(bar, "button", { type: "button", textContent: text, className, title: text }, { "aria-keyshortcuts": key });
    if (pressed !== null) button.setAttribute("aria-pressed", String(pressed));
    add(button, "kbd", { textContent: key.toUpperCase() }, { "aria-hidden": "true" });
    button.addEventListener("click", act);
  };
  const is = (kind, decided) => decision?.decision === kind && (decided === undefined || decision.decided === decided);
  const suggested = data.classes[item.suggested];
  addButton(`Keep ${data.classes[item.given]}`, "k", () => decide("keep"), is("keep"), "keep wide");
  if (item.given !== item.suggested) {
    addButton(`Change to ${suggested}`, "s", () => decide("change", suggested), is("change", suggested), "change wide");
  }
  const choice = add(bar, "select", { id: "choice" }, { "aria-label": "Change to another label", "aria-keyshortcuts": "c" });
  add(choice, "option", { value: "", textContent: "Change to …" });
  data.classes.forEach((name, position) => {
    if (position !== item.given) add(choice, "option", { value: String(position), textContent: position < 9 ? `${position + 1}  ${name}` : name });
  });
  if (is("change") && decision.decided !== suggested) choice.value = String(data.classes.indexOf(decision.decided));
  // Arrows and letters go through the choices: only Enter, or the mouse, decides
  let byKeys = false;
  const chosen = () => choice.value !== "" && decide("change", data.classes[Number(choice.value)]);
  choice.addEventListener("pointerdown", () => (byKeys = false));
  choice.addEventListener("change", () => byKeys || chosen());
  choice.addEventListener("keydown", (event) => {
    byKeys = true;
    if (event.key !== "Enter") return;
    event.preventDefault();
    chosen();
    $("list").focus();
  });
  addButton("Drop", "d", () => decide("drop"), is("drop"), "drop");
  addButton("Can't tell", "u", () => decide("unsure"), is("unsure"));
  addButton("Undo", "z", undo, null);
}

function estimate() {
  const cases = [];
  let nWrong = 0;
  for (const [place, { decision }] of decisions) {
    if (decision !== "keep" && decision !== "change") continue;
    const wrong = Number(decision === "change");
    nWrong += wrong;
    cases.push({ odds: items[place].odds, given: items[place].given, wrong });
  }
  const chances = new Chances(data.explanations, data.classes.length, cases);
  const groups = data.unlisted.concat(items.filter((_, place) => !judged(place)).map((item) => ({ ...item, count: 1 })));
  const ahead = [...items.keys()].filter((place) => !decisions.has(place)).slice(0, NEXT);
  return {
    nJudged: cases.length, nWrong, nAhead: ahead.length,
    expected: ahead.reduce((sum, place) => sum + chances.of(items[place]), 0),
    ...chances.range(data.size, nWrong, groups, data.range),
  };
}

const judged = (place) => ["keep", "change"].includes(decisions.get(place)?.decision);

function drawProgress() {
  const found = estimate(), size = data.size.toLocaleString("en");
  $("count").textContent = `${decisions.size.toLocaleString("en")} of ${items.length.toLocaleString("en")}`;
  $("progress").setAttribute("aria-valuemax", items.length);
  $("progress").setAttribute("aria-valuenow", decisions.size);
  $("progress").firstElementChild.style.width = `${(100 * decisions.size) / Math.max(items.length, 1)}%`;
  const rest = found.nAhead ? `; about ${Math.round(found.expected)} of the next ${found.nAhead} are expected to be wrong` : "";
  const text = found.nJudged < ENOUGH
    ? `If mistakes are random, about ${percent(data.share)} of ${size} are wrong; mistakes that follow a pattern are not counted. After ${ENOUGH} decisions, this is an estimate from your decisions.`
    : `Of the ${found.nJudged} labels you reviewed, ${found.nWrong} were wrong${rest}. Estimated error rate of all ${size}: ${percent(found.low)} to ${percent(found.high)}.`;
  $("share").textContent = $("estimate").textContent = text;
}

function choose(changes) {
  $("overview").close();
  current = 0;
  setFilter({ ...NO_FILTER, ...changes });
  $("list").focus();
}

// In and out

function exported() {
  const here = [...decisions.keys()].map(entryOf);
  return toCsv([...here, ...elsewhere.values()].sort((a, b) => a.row - b.row));
}

function exportFile() {
  const url = URL.createObjectURL(new Blob([exported()], { type: "text/csv" }));
  const link = add(document.body, "a", { href: url, download: "decisions.csv", hidden: true });
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
  say(`${counted(decisions.size, "decision")} exported to decisions.csv.`);
}

async function importFile(file) {
  try {
    const entries = fromCsv(await file.text());
    const others = entries.filter((entry) => !take(entry));
    for (const place of decisions.keys()) keep(place);
    const kept = entries.length - others.length;
    warn(others.length ? `Left out: ${others.length} of ${counted(entries.length, "decision")}, because their rows or labels are not on this page, such as row ${others[0].row}.` : "");
    say(`${counted(kept, "decision")} imported.`);
  } catch (error) {
    warn(error.message);
  }
  applyFilter();
  drawAll();
}

// Keys and buttons

function toList() {
  document.body.classList.remove("reading");
  drawList(true);
  $("list").focus();
}

function move(by) {
  if (listed.length) open(current + by, document.body.classList.contains("reading"));
}

const page = () => Math.max(1, Math.floor($("list").clientHeight / HEIGHT) - 1);
const KEYS = [
  [["ArrowDown", "n"], "↓ or N", "next label", () => move(1)],
  [["ArrowUp", "p"], "↑ or P", "previous label", () => move(-1)],
  [["PageDown"], "Page ↓", "page down", () => move(page())],
  [["PageUp"], "Page ↑", "page up", () => move(-page())],
  [["Home"], "Home", "first label", () => move(-items.length)],
  [["End"], "End", "last label", () => move(items.length)],
  [["Enter"], "Enter", "read the label", () => { open(current); $("detail").focus(); }],
  [["k"], "K", "keep the given label", () => decide("keep")],
  [["s"], "S", "change to the suggested label", () => decide("change", data.classes[items[listed[current]]?.suggested])],
  [["1", "2", "3", "4", "5", "6", "7", "8", "9"], "1 to 9", "change to that class", (key) => data.classes[key - 1] !== undefined && decide("change", data.classes[key - 1])],
  [["c"], "C", "change to any class", () => $("choice")?.focus()],
  [["d"], "D", "drop the row", () => decide("drop")],
  [["u"], "U", "can't tell", () => decide("unsure")],
  [["z"], "Z", "undo", undo],
  [["t"], "T", "note; Escape ends it", () => $("note")?.focus()],
  [["/"], "/", "search", () => $("search").focus()],
  [["o"], "O", "overview", () => { drawOverview(data, choose); $("overview").showModal(); }],
  [["e"], "E", "export the decisions", exportFile],
  [["?"], "?", "these keys", () => $("help").showModal()],
  [["Escape"], "Esc", "back to the list", toList],
];
const actions = new Map(KEYS.flatMap(([keys, , , act]) => keys.map((key) => [key, act])));

document.addEventListener("keydown", (event) => {
  if (document.querySelector("dialog[open]")) return;
  const typing = event.target.matches("input, textarea, select");
  if (typing && event.key === "Escape") {
    event.preventDefault(); // which would empty the search
    toList();
  }
  if (typing || event.altKey) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const isUndo = key === "z" && (event.ctrlKey || event.metaKey);
  if ((event.ctrlKey || event.metaKey) && !isUndo) return;
  if (key === "Enter" && event.target.matches("button, a")) return;
  const act = actions.get(key);
  if (!act || (event.repeat && !/^(Arrow|Page|[np]$)/.test(key))) return;
  event.preventDefault();
  act(key);
});

function start() {
  document.title = `Labels of ${data.name}`;
  $("title").textContent = `${data.target} in ${data.name}`;
  const ending = data.name.match(/\.(parquet|csv\.gz)$/)?.[0] ?? ".csv";
  $("command").textContent = `kfhe apply decisions.csv ${data.name} -o cleaned${ending}`;
  const fill = (name, choices) => choices.forEach(([value, textContent]) => add($(name), "option", { value, textContent }));
  fill("state", [["all", "Open and reviewed"], ["open", "Open"], ["judged", "Reviewed"], ["suspects", "Suspects"]]);
  for (const side of ["given", "suggested"]) {
    const used = [...data.classes.keys()].filter((position) => items.some((item) => item[side] === position));
    fill(side, [["", side === "given" ? "Any label" : "Any suggestion"], ...used.map((position) => [String(position), `${side}: ${data.classes[position]}`])]);
    $(side).addEventListener("change", () => setFilter({ [side]: $(side).value }));
  }
  $("state").addEventListener("change", () => setFilter({ state: $("state").value }));
  $("quality").addEventListener("input", () => setFilter({ quality: Number($("quality").value) }));
  $("search").addEventListener("input", () => setFilter({ text: $("search").value }));
  $("filters").addEventListener("submit", (event) => event.preventDefault());
  $("clear").addEventListener("click", () => clearFilter(listed[current]));
  $("list").addEventListener("scroll", () => drawList(false));
  addEventListener("resize", () => drawList(false));
  $("export").addEventListener("click", exportFile);
  $("import-open").addEventListener("click", () => $("import").click());
  $("import").addEventListener("change", () => $("import").files[0] && importFile($("import").files[0]));
  $("overview-open").addEventListener("click", actions.get("o"));
  $("help-open").addEventListener("click", actions.get("?"));
  for (const [, keys, text] of KEYS) {
    add(add($("keys"), "dt"), "kbd", { textContent: keys });
    add($("keys"), "dd", { textContent: text });
  }
  const left = [...data.decisions, ...storage.load(data.target)].filter((entry) => !take(entry));
  if (left.length) warn(`Left out: ${counted(left.length, "decision")} in this browser, which belong to other labels.`);
  const first = items.findIndex((_, place) => !decisions.has(place));
  current = Math.max(0, first);
  setFilter({});
  if (window === window.top) $("list").focus(); // on a page of others, that would be their reader's focus
}

start();
