// Decisions: kept in the browser, one entry for each row, and written and read as csv

const FIELDS = ["row", "digest", "target", "given", "decision", "decided", "note"];

function toCsv(rows) {
  const field = (value) => {
    const text = String(value ?? "");
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [FIELDS, ...rows.map((row) => FIELDS.map((name) => row[name]))]
    .map((row) => row.map(field).join(",") + "\r\n").join("");
}

function fromCsv(text) {
  text = text.replace(/^\ufeff/, "");
  const header = text.split("\n", 1)[0];
  const separator = [",", ";", "\t"].find((mark) => header.includes(mark)) ?? ",";
  const rows = [[""]];
  let quoted = false;
  for (let i = 0; i < text.length; i++) {
    const letter = text[i], row = rows[rows.length - 1];
    if (quoted) {
      if (letter !== '"') row[row.length - 1] += letter;
      else if (text[i + 1] === '"') row[row.length - 1] += text[++i];
      else quoted = false;
    } else if (letter === '"' && row[row.length - 1] === "") quoted = true;
    else if (letter === separator) row.push("");
    else if (letter === "\n" || letter === "\r") {
      if (letter === "\r" && text[i + 1] === "\n") i++;
      rows.push([""]);
    } else row[row.length - 1] += letter;
  }
  const [names, ...others] = rows.filter((row) => row.length > 1);
  const missing = FIELDS.find((name) => !names?.includes(name));
  if (missing) throw new Error(`This is not a file of decisions: it has no column ${missing}.`);
  return others.map((row) => Object.fromEntries(names.map((name, i) => [name, row[i] ?? ""])));
}

// A decision that is no decision, or that contradicts itself, is left alone
function isSound({ decision, given, decided }) {
  if (decision === "keep") return decided === given;
  if (decision === "change") return decided !== "" && decided !== given;
  return (decision === "drop" || decision === "unsure") && decided === "";
}

class Storage {
  constructor(key, warn) {
    this.prefix = `kfhe review ${key} `;
    this.warn = warn;
    this.works = true;
  }

  attempt(action) {
    if (!this.works) return undefined;
    try {
      return action();
    } catch {
      this.works = false;
      this.warn("This browser can't store the decisions: export them before you close the page.");
      return undefined;
    }
  }

  load(target) {
    return this.attempt(() => Object.keys(localStorage).filter((key) => key.startsWith(this.prefix))
      .map((key) => ({ row: key.slice(this.prefix.length), target, ...JSON.parse(localStorage.getItem(key)) }))) ?? [];
  }

  // What all entries share, or their key says, is not kept with each: browsers keep a few megabytes
  save(row, entry) {
    const kept = { ...entry, row: undefined, target: undefined };
    this.attempt(() => (entry ? localStorage.setItem(this.prefix + row, JSON.stringify(kept))
      : localStorage.removeItem(this.prefix + row)));
  }
}
