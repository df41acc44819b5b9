// The runs of the page, and what of them is looked at.

const RUN_COLOURS = 8;

class Run {
  constructor(json, number) {
    this.json = json;
    this.number = number;
    this.name = json.name;
    this.rows = json.rows;
    this.colour = `var(--c${number % RUN_COLOURS})`;
    this.dash = ["", "6 3", "2 3", "8 3 2 3"][Math.floor(number / RUN_COLOURS) % 4];
    this.shown = true;
    this.columns = new Map();
    this.lists = new Map();
  }
  async readSteps() {
    const bytes = await inflate(document.getElementById(`steps-${this.number}`).textContent);
    for (const column of decodeColumns(this.json.steps, bytes, this.rows, this.json.hole_rows)) this.columns.set(column.key, column);
    this.step = this.values("step");
    this.axes = {step: this.step, tokens: this.summed("tokens"), hours: this.summed("seconds", 1 / 3600)};
  }
  async readRanks() {
    const bytes = await inflate(document.getElementById(`ranks-${this.number}`).textContent);
    for (const column of decodeColumns(this.json.ranks, bytes, this.rows, this.json.hole_rows, key => this.strideOf(key))) {
      if (!this.lists.has(column.key)) this.lists.set(column.key, []);
      this.lists.get(column.key)[column.index] = column.values;
    }
  }
  values(key) { return this.columns.get(key)?.values; }
  keysUnder(start) { return [...this.columns.keys()].filter(key => key.startsWith(start)); }
  // A list has a value for every so many rows.
  list(key) { return this.lists.get(key) ?? []; }
  strideOf(key) {
    const [, own, parts] = this.json.strides;
    return key === "rank_milliseconds.own" ? own : key.startsWith("rank_milliseconds.") ? parts : 1;
  }

  // The sum from the first row on; a row stands for the steps before it that a thinned log, or a hole, leaves out.
  summed(key, unit = 1) {
    const values = this.values(key), out = new Float64Array(this.rows);
    let sum = 0, before = this.step[0] - 1;
    for (let row = 0; row < this.rows; ++row) {
      const value = values?.[row];
      if (Number.isFinite(value)) {
        sum += value * (this.step[row] - before);
        before = this.step[row];
      }
      out[row] = sum * unit;
    }
    return out;
  }
  // The first row that is not before a value of the axis.
  rowFrom(axis, value) {
    const xs = this.axes[axis];
    let low = 0, high = this.rows;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (xs[middle] < value) low = middle + 1; else high = middle;
    }
    return low;
  }
  rowNear(axis, value) {
    const xs = this.axes[axis], row = Math.min(this.rowFrom(axis, value), this.rows - 1);
    return row > 0 && value - xs[row - 1] < xs[row] - value ? row - 1 : row;
  }
  // What happened after a step, on an axis.
  placeOf(axis, step) {
    if (axis === "step") return step;
    const row = this.rowFrom("step", step);
    return this.axes[axis][Math.min(row, this.rows - 1)];
  }
  // The plans with all that they leave out because the one before had it too, and of each row which of them held; -1 = not known.
  get plans() {
    let slabs = null, widths = null;
    return this.allPlans ??= this.json.plans.map(plan => ({...plan, slabs: slabs = plan.slabs ?? slabs, widths: widths = plan.widths ?? widths}));
  }
  get planOfRow() {
    if (this.rowPlans) return this.rowPlans;
    this.rowPlans = new Int16Array(this.rows).fill(-1);
    for (let row = 0, at = -1; row < this.rows; ++row) {
      while (at + 1 < this.plans.length && this.plans[at + 1].after < this.step[row]) ++at;
      this.rowPlans[row] = at;
    }
    return this.rowPlans;
  }
}

// What all figures have in common: runs, the axis, the part that is seen. Whoever changes it calls changed().
class View {
  constructor(runs) {
    this.runs = runs;
    this.axis = "step";
    this.detail = runs[0];
    this.smooth = 1;
    this.marks = {lives: true, plans: true, checkpoints: true, warnings: false};
    this.listeners = [];
    this.seen = null;
  }
  get shown() { return this.runs.filter(run => run.shown); }
  get whole() {
    const runs = this.shown.length ? this.shown : this.runs;
    const low = Math.min(...runs.map(run => run.axes[this.axis][0])), high = Math.max(...runs.map(run => run.axes[this.axis].at(-1)));
    return high > low ? [low, high] : [low - 1, high + 1];
  }
  get range() { return this.seen ?? this.whole; }
  zoom(low, high) {
    const [least, most] = this.whole;
    low = Math.max(low, least);
    high = Math.min(high, most);
    if (!(high > low)) return;
    this.seen = low <= least && high >= most ? null : [low, high];
    this.changed();
  }
  reset() { this.seen = null; this.changed(); }
  changed() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      for (const listener of this.listeners) listener();
    });
  }
}
