// Tables: the runs in numbers, how they differ, lives, checkpoints, plans, events, input, provenance.

// columns: [{name, number}]; rows: lists of texts.
function dataTable(title, columns, rows, colours) {
  const button = element("button", {type: "button", "aria-label": `Copy the table ${title}`,
    onclick: () => copyText([columns.map(column => column.name), ...rows].map(row => row.join("\t")).join("\n") + "\n", button)}, "Copy");
  const kind = column => column.number ? "number" : column.long ? "text" : "";
  const table = element("table", {class: "data", "aria-label": title},
    element("thead", {}, element("tr", {}, ...columns.map(column => element("th", {scope: "col", class: kind(column)}, column.name)))),
    element("tbody", {}, ...rows.map((row, number) => element("tr", {}, ...row.map((text, at) => at === 0
      ? element("th", {scope: "row", class: kind(columns[at])}, colours ? swatch(colours[number]) : "", text)
      : element("td", {class: kind(columns[at])}, text))))));
  return {button, table: element("div", {class: "table", tabindex: 0, role: "region", "aria-label": title}, table)};
}

function openTable(parent, title, columns, rows, colours) {
  const {button, table} = dataTable(title, columns, rows, colours);
  parent.append(element("div", {class: "head"}, element("h2", {}, title), button), table);
}

function foldedTable(parent, title, columns, rows, open = false) {
  if (!rows.length) return;
  const {button, table} = dataTable(title, columns, rows);
  parent.append(element("details", {open}, element("summary", {}, `${title} (${rows.length})`), element("p", {}, button), table));
}

const texts = names => names.map(name => ({name}));
const numbers = names => names.map(name => ({name, number: true}));
const orDash = value => value === null || value === undefined || value === "" ? "-" : String(value);

function median(values) {
  const sorted = Float64Array.from(values ?? []).filter(Number.isFinite).sort();
  return sorted.length ? sorted[sorted.length >> 1] : NaN;
}

// The last finite value, or the least with its step.
function lastOf(values) {
  for (let row = (values?.length ?? 0) - 1; row >= 0; --row) if (Number.isFinite(values[row])) return values[row];
  return NaN;
}
function leastOf(run, values) {
  let best = -1;
  for (let row = 0; row < (values?.length ?? 0); ++row)
    if (Number.isFinite(values[row]) && (best < 0 || values[row] < values[best])) best = row;
  return best < 0 ? "-" : `${exact(values[best])} at step ${run.step[best]}`;
}

function stateText(run) {
  const {state, exit} = run.json;
  return exit ? `${state} (${exit.code}): ${exit.reason}` : state;
}

function endTable(parent, runs) {
  const columns = [...texts(["run"]), ...numbers(["steps", "loss", "validation, first batches", "least of these", "validation, whole set", "tokens", "time of steps", "step, median",
    "tok/s, median", "mfu, median", "imbalance, median", "memory"]), {name: "ended", long: true}];
  const percent = value => Number.isFinite(value) ? `${exact(Number((100 * value).toPrecision(3)))} %` : "-";
  const rows = runs.map(run => {
    const steps = lastOf(run.values("steps"));
    return [run.name, `${run.step.at(-1)}${Number.isFinite(steps) ? ` of ${steps}` : ""}`, exact(lastOf(run.values("loss"))), exact(lastOf(run.values("valid_loss"))),
      leastOf(run, run.values("valid_loss")), exact(lastOf(run.values("valid_loss_whole"))), brief(run.axes.tokens.at(-1)), durationText(3600 * run.axes.hours.at(-1)),
      `${exact(median(run.values("seconds")))} s`, brief(median(run.values("tokens_per_second"))), percent(median(run.values("mfu"))), percent(median(run.values("imbalance"))),
      `${brief(lastOf(run.values("memory_bytes")) / 2 ** 20)} MiB`, stateText(run)];
  });
  openTable(parent, "Runs in numbers", columns, rows, runs.map(run => run.colour));
}

function differenceTable(parent, report) {
  if (!report.differences.length) return;
  foldedTable(parent, "Keys of the input in which the runs differ", texts(["key", ...report.runs.map(run => run.name)]),
    report.differences.map(one => [one.key, ...one.values.map(orDash)]), report.differences.length <= 25);
}

function lifeTable(parent, run) {
  const columns = [...numbers(["life", "ranks", "nodes"]), {name: "started"}, {name: "why", long: true}, ...numbers(["from step", "to step", "first step after", "lost steps"]), {name: "ended", long: true}];
  foldedTable(parent, "Lives", columns, run.json.lives.map(life => [orDash(life.life), orDash(life.ranks), orDash(life.nodes), dateText(life.started), life.why,
    orDash(life.from_step), orDash(life.step), life.first_step_seconds === null ? "-" : durationText(life.first_step_seconds), orDash(life.lost_steps),
    life.reason ? `${life.code === null ? "" : `${life.code}: `}${life.reason}` : "-"]), true);
}

function planTable(parent, run) {
  foldedTable(parent, "Plans", [...numbers(["after step", "ranks"]), ...texts(["mesh", "sequences by slab", "hash"])],
    run.json.plans.map(plan => [String(plan.after), String(plan.ranks), plan.mesh, plan.sequences.join(" + "), plan.hash]));
}

function sumTable(parent, title, unit, run, start) {
  const sums = run.keysUnder(start).map(key => [key.slice(start.length), run.values(key).reduce((sum, value) => sum + (Number.isFinite(value) ? value : 0), 0)]);
  const whole = sums.reduce((sum, [, value]) => sum + value, 0);
  foldedTable(parent, title, [...texts(["name"]), ...numbers([unit, "share"])],
    sums.sort((a, b) => b[1] - a[1]).map(([name, sum]) => [name, exact(sum), `${(100 * sum / (whole || 1)).toFixed(1)} %`]));
}

function eventTable(parent, run) {
  foldedTable(parent, "Events in run.log", [...numbers(["step"]), ...texts(["kind"]), {name: "text", long: true}],
    run.json.events.map(event => [String(event.step), event.kind, event.text]));
}

// Whatever is in a JSON value: names and values; long texts as they are.
function tree(value) {
  const folded = (count, text) => element("details", {}, element("summary", {}, count), element("pre", {}, text));
  if (value === null || typeof value !== "object") {
    const text = String(value ?? "-");
    return text.includes("\n") ? folded(`${text.trim().split("\n").length} lines`, text) : document.createTextNode(text);
  }
  const plain = Array.isArray(value) && value.every(item => item === null || typeof item !== "object");
  if (plain) return value.length > 16 ? folded(`${value.length} values`, value.join("\n")) : document.createTextNode(value.join(", "));
  return element("table", {class: "data"}, element("tbody", {}, ...Object.entries(value).map(([key, item]) =>
    element("tr", {}, element("th", {scope: "row"}, key), element("td", {}, tree(item))))));
}

function recordTable(parent, run) {
  if (!run.json.record) return;
  const button = element("button", {type: "button", "aria-label": "Copy run.json", onclick: () => copyText(JSON.stringify(run.json.record, null, 2), button)}, "Copy");
  parent.append(element("details", {}, element("summary", {}, "Provenance (run.json)"), element("p", {}, button),
    element("div", {class: "table", tabindex: 0, role: "region", "aria-label": "Provenance"}, tree(run.json.record))));
}

function detailTables(parent, run, many) {
  parent.replaceChildren(element("h2", {}, many ? `Details of ${run.name}` : "Details"));
  lifeTable(parent, run);
  sumTable(parent, "Phases of rank 0, sum of the steps", "seconds", run, "phase_seconds.");
  sumTable(parent, "Bytes that rank 0 sent, by axis", "bytes", run, "bytes_by_axis.");
  planTable(parent, run);
  eventTable(parent, run);
  foldedTable(parent, "Input, with all defaults", texts(["key", "value"]), Object.entries(run.json.input));
  recordTable(parent, run);
}
