// Puts the page together: reads the runs, makes controls, figures and tables, and hears what the reader wants.

function readMarks(run) {
  const marks = [], {lives, events} = run.json;
  for (const life of lives)
    if (Number.isFinite(life.from_step))
      marks.push({kind: "lives", step: life.from_step, label: lives.length > 1 ? `life ${life.life}` : "", text: `life ${life.life} on ${life.ranks} ranks: ${life.why}`});
  for (const plan of run.json.plans)
    if (plan.after > 0) marks.push({kind: "plans", step: plan.after, text: `plan ${plan.hash}: mesh ${plan.mesh}, sequences by slab ${plan.sequences.join("+")}`});
  for (const event of events)
    if (event.kind === "checkpoint") marks.push({kind: "checkpoints", step: event.step, text: event.text});
    else if (event.kind === "warning" || event.kind === "error") marks.push({kind: "warnings", step: event.step, text: `${event.kind}: ${event.text}`});
  return marks.filter(mark => mark.kind !== "lives" || mark.step > run.step[0] - 1 || lives.length > 1);
}

const NAMED = new Set(["step", "steps", "loss", "valid_loss", "valid_loss_whole", "grad_norm", "lr", "seconds", "predicted_seconds", "tokens", "tokens_per_second", "mfu", "mfu_of_peak",
  "imbalance", "comm_fraction", "adasum_gain", "noise_scale_sequences", "left_out", "loss_scale", "memory_bytes"]);
const named = (run, ...keys) => keys.map(([key, name, more]) => ({name, values: run.values(key), sparse: run.columns.get(key)?.sparse, ...more}));

// Of the sets that have names. Of the first batches and of whole sets are different figures: never one curve.
function validationsOfSets(run, start, part) {
  return run.keysUnder(start).map(key => ({name: `validation ${key.slice(start.length)}, ${part}`, values: run.values(key), sparse: true}));
}

function trainingFigures(parent, view) {
  const line = (title, unit, series, more = {}) => new LineChart(parent, view, {title, unit, series, ...more});
  line("Loss", "", run => [...named(run, ["loss", "training"], ["valid_loss", "validation, first batches", {sparse: true}],
    ["valid_loss_whole", "validation, whole set", {sparse: true}]), ...validationsOfSets(run, "valid_losses.", "first batches"),
    ...validationsOfSets(run, "valid_losses_whole.", "whole set")],
    {wide: true, height: 300, smooth: true, hint: "nats per token"});
  line("Learning rate", "", run => named(run, ["lr", ""]), {zero: true});
  line("Gradient norm", "", run => named(run, ["grad_norm", ""]), {smooth: true, log: true, hint: "before clipping"});
  line("Tokens per second", "tok/s", run => named(run, ["tokens_per_second", ""]), {smooth: true, zero: true});
  line("Time of a step", "s", run => named(run, ["seconds", "measured"], ["predicted_seconds", "predicted"]), {smooth: true, zero: true, hint: "seconds"});
  line("Use of the matmul rate", "", run => named(run, ["mfu", "of the measured rate"], ["mfu_of_peak", "of the data sheets' peak"]), {smooth: true, zero: true, hint: "mfu"});
  line("Imbalance and waiting", "", run => named(run, ["imbalance", "imbalance of ranks"], ["comm_fraction", "share that rank 0 waited"]), {smooth: true, zero: true});
  line("Aggregation gain", "", run => named(run, ["adasum_gain", ""]), {smooth: true, hint: "Adasum: 1 = mean"});
  line("Gradient noise scale", "sequences", run => named(run, ["noise_scale_sequences", ""]), {smooth: true, log: true, hint: "sequences"});
  line("Gradients left out", "", run => named(run, ["left_out", ""]).filter(one => one.values?.some(value => value > 0)), {zero: true, hint: "not finite"});
  line("Loss scale", "", run => named(run, ["loss_scale", "", {sparse: true}]), {log: true});
  line("Memory of rank 0's tensors", "bytes", run => named(run, ["memory_bytes", ""]), {zero: true, hint: "largest so far"});
}

// Numbers of the log that no figure above shows.
function otherFigures(parent, view) {
  const keys = new Set(view.runs.flatMap(run => [...run.columns.keys()].filter(key => !NAMED.has(key) && !key.includes("."))));
  for (const key of keys) new LineChart(parent, view, {title: key, unit: "", series: run => named(run, [key, ""])});
}

function phaseParts(run) {
  const sum = values => values.reduce((all, value) => all + (Number.isFinite(value) ? value : 0), 0);
  const parts = run.keysUnder("phase_seconds.").map(key => ({name: key.slice(14), values: run.values(key)}));
  if (!parts.length) return [];
  const seconds = run.values("seconds");
  const rest = seconds.map((whole, row) => Math.max(0, parts.reduce((left, part) => left - (part.values[row] || 0), whole)));
  return [...parts.sort((a, b) => sum(b.values) - sum(a.values)), {name: "other", values: rest}];
}

function byteParts(run) {
  return run.keysUnder("bytes_by_axis.").map(key => ({name: key.slice(14), values: run.values(key), dots: run.columns.get(key).sparse}));
}

function detailFigures(parent, view) {
  new StackChart(parent, view, {title: "Phases of the step", unit: "s", parts: phaseParts, wide: true, height: 280, hint: "rank 0, seconds; zoomed out, means"});
  new LineChart(parent, view, {title: "Bytes sent, by axis", unit: "bytes", wide: true, log: true, hint: "by rank 0", ofDetail: true, series: byteParts});
}

// Sources of maps (ranks.js). As the log has it:
function listSource(run, key, word) {
  const list = run.list(key);
  return list.length ? {ranks: list.length, stride: run.strideOf(key), at: (rank, n) => list[rank]?.[n] ?? NaN, word} : null;
}

// Of each rank, from the plan in force: cell(plan, rank, row).
function planSource(run, cell) {
  if (!run.plans.length) return null;
  const at = (rank, row) => {
    const plan = run.plans[run.planOfRow[row]];
    return plan && rank < plan.ranks ? cell(plan, rank, row) ?? NaN : NaN;
  };
  return {ranks: Math.max(...run.plans.map(plan => plan.ranks)), stride: 1, at};
}

function sequencesSource(run) {
  const slabs = run.list("slab_sequences");
  if (!slabs.length) return null;
  return planSource(run, (plan, rank, row) => plan.slabs[rank] < 0 ? 0 : slabs[plan.slabs[rank]]?.[row]) ?? listSource(run, "slab_sequences", "slab");
}

// Own times of the ranks that had work in a row that has any, ascending.
function sortedTimes(own, n) {
  return own.map(values => values?.[n] ?? NaN).filter(value => value > 0).sort((a, b) => a - b);
}
const middleOf = sorted => sorted[(sorted.length - 1) >> 1];

function overMedianSource(run) {
  const source = listSource(run, "rank_milliseconds.own"), own = run.list("rank_milliseconds.own"), medians = [];
  return source && {...source, at: (rank, n) => source.at(rank, n) / (medians[n] ??= middleOf(sortedTimes(own, n)) ?? NaN)};
}

function spreadOfRanks(run) {
  const own = run.list("rank_milliseconds.own"), stride = run.strideOf("rank_milliseconds.own");
  if (own.length < 2) return [];
  const lines = ["slowest", "median", "fastest"].map(name => ({name, values: new Float64Array(run.rows).fill(NaN), sparse: stride > 1}));
  for (let n = 0; n * stride < run.rows; ++n) {
    const all = sortedTimes(own, n);
    if (all.length) [all.at(-1), middleOf(all), all[0]].forEach((value, line) => { lines[line].values[n * stride] = value; });
  }
  return lines;
}

function rankFigures(parent, view) {
  const time = (name, key) => ({name, unit: "ms", timed: true, source: run => listSource(run, `rank_milliseconds.${key}`)});
  const width = (name, key) => ({name, unit: "", source: run => planSource(run, (plan, rank) => plan.widths[key][rank])});
  new RankMap(parent, view, {title: "Time of each rank", wide: true, hint: "without waiting for others", measures: [
    time("own time", "own"), {name: "own time / median of the ranks", unit: "", timed: true, source: overMedianSource},
    time("time on a core", "cpu"), time("matmul", "matmul"), time("attention", "attention"), time("other", "other")]});
  new RankMap(parent, view, {title: "Work of each rank", wide: true, hint: "where the balancer moved it", measures: [
    {name: "sequences of its slab", unit: "", source: sequencesSource}, width("heads (groups)", "groups"), width("feed-forward", "ffn"), width("hidden", "hidden"), width("vocabulary", "vocab")]});
  new LineChart(parent, view, {title: "Slowest, median and fastest rank", unit: "ms", series: spreadOfRanks, smooth: true, zero: true, wide: true, hint: "own time, ms"});
}

function choice(label, values, chosen, change) {
  const select = element("select", {onchange: () => change(select.value)}, ...values.map(([value, name]) => element("option", {value, selected: value === chosen}, name)));
  return element("label", {}, label, select);
}

function themeButton() {
  const kinds = ["auto", "light", "dark"], root = document.documentElement;
  const button = element("button", {type: "button", onclick: () => {
    const next = kinds[(kinds.indexOf(root.dataset.theme ?? "auto") + 1) % 3];
    if (next === "auto") delete root.dataset.theme; else root.dataset.theme = next;
    button.textContent = `Theme: ${next}`;
  }}, "Theme: auto");
  return button;
}

function makeControls(view, showDetail) {
  document.getElementById("runs").append(...view.runs.map(run => {
    const button = element("button", {type: "button", class: "run", "aria-pressed": true, onclick: () => {
      if (run.shown && view.shown.length === 1) return;  // one stays
      run.shown = !run.shown;
      button.setAttribute("aria-pressed", run.shown);
      view.changed();
    }}, swatch(run.colour), run.name);
    return button;
  }));
  const choices = document.getElementById("choices");
  if (view.runs.length > 1)
    choices.append(choice("Details of", view.runs.map(run => [String(run.number), run.name]), "0", number => { view.detail = view.runs[number]; view.changed(); showDetail(); }));
  choices.append(choice("Over", Object.entries(AXIS_NAMES), "step", axis => { view.axis = axis; view.seen = null; view.changed(); }),
    choice("Mean of", [["1", "1 step"], ["10", "10 steps"], ["50", "50 steps"], ["200", "200 steps"]], "1", width => { view.smooth = Number(width); view.changed(); }));
  for (const kind of Object.keys(view.marks)) {
    const button = element("button", {type: "button", "aria-pressed": view.marks[kind], onclick: () => {
      view.marks[kind] = !view.marks[kind];
      button.setAttribute("aria-pressed", view.marks[kind]);
      view.changed();
    }}, kind);
    choices.append(button);
  }
  choices.append(element("button", {type: "button", onclick: () => view.reset()}, "Whole range"), themeButton());
}

function figureGroup(title) {
  const group = element("div", {class: "group"});
  document.getElementById("figures").append(element("h2", {}, title), group);
  return group;
}

function showNotes(report) {
  document.getElementById("made").textContent = `${report.made_by}, ${dateText(report.made)}`;
  document.title = `${report.runs.map(run => run.name).join(", ")} - transformer3d report`;
  const notes = [...report.notes, ...report.runs.flatMap(run => run.notes.map(note => report.runs.length > 1 ? `${run.name}: ${note}` : note))];
  document.getElementById("notes").append(...notes.map(note => element("li", {}, note)));
}

async function main() {
  const report = JSON.parse(document.getElementById("report").textContent);
  showNotes(report);
  if (!("DecompressionStream" in window)) throw new Error("this browser is too old for the figures (DecompressionStream is missing)");
  const runs = report.runs.map((run, number) => new Run(run, number));
  for (const run of runs) {
    await run.readSteps();
    run.marks = readMarks(run);
  }
  const view = new View(runs), tables = document.getElementById("tables"), details = element("div");
  const showDetail = () => detailTables(details, view.detail, runs.length > 1);
  makeControls(view, showDetail);
  endTable(document.getElementById("end"), runs);
  const training = figureGroup("Training");
  trainingFigures(training, view);
  otherFigures(training, view);
  detailFigures(figureGroup("The step"), view);
  differenceTable(tables, report);
  tables.append(details);
  showDetail();
  view.changed();
  await new Promise(done => requestAnimationFrame(() => setTimeout(done)));  // the first figures stand
  performance.mark("figures");
  for (const run of runs) await run.readRanks();
  rankFigures(figureGroup("Ranks"), view);
  view.changed();
  performance.mark("ranks");
}

main().catch(error => {
  document.getElementById("notes").append(element("li", {}, `The figures cannot be drawn: ${error.message}`));
  console.error(error);
});
