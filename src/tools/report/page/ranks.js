// A map: steps to the right, ranks downward, a colour for what each rank has or takes. Of the run in detail.

// Dark blue over green to yellow; readable in both themes and in grey.
const RAMP = [[48, 18, 102], [52, 75, 145], [38, 128, 142], [53, 175, 120], [150, 212, 64], [249, 231, 55]];

function rampColour(part) {
  const place = Math.min(Math.max(part, 0), 1) * (RAMP.length - 1), from = Math.min(Math.floor(place), RAMP.length - 2), rest = place - from;
  return RAMP[from].map((low, channel) => Math.round(low + (RAMP[from + 1][channel] - low) * rest));
}

class RankMap extends Plot {
  // options.measures: [{name, unit, timed, source: run => null or {ranks, stride, at(rank, n), word}}]; at: the value of row n * stride, which
  // stands for the rows behind it, too
  constructor(parent, view, options) {
    super(parent, view, {...options, grid: false});
    this.canvas = element("canvas", {"aria-hidden": "true"});
    this.area.prepend(this.canvas);
    this.choice = element("select", {"aria-label": `${options.title}: what is shown`, onchange: () => this.redraw()},
      ...options.measures.map((measure, number) => element("option", {value: number}, measure.name)));
    this.copyButton.before(this.choice);
    this.rank = 0;
  }
  runs() { return [this.view.detail]; }
  measure() { return this.options.measures[this.choice.value]; }
  hasData() {
    const run = this.view.detail, options = [...this.choice.options];
    for (const option of options) option.hidden = option.disabled = !this.options.measures[option.value].source(run);
    if (this.choice.selectedOptions[0]?.disabled) this.choice.value = options.find(option => !option.disabled)?.value ?? 0;
    this.source = this.measure().source(run);
    const ranks = this.source?.ranks ?? 0;
    this.options.height = 38 + ranks * Math.max(3, Math.min(18, Math.floor(360 / Math.max(ranks, 1))));
    return ranks > 0;
  }
  valueRange() { return [this.source.ranks, 0]; }
  word() { return this.source.word ?? "rank"; }
  valueTicks() {
    const {ranks} = this.source, every = [1, 2, 4, 8, 16, 32, 64, 128].find(stride => (this.height - 30) / ranks * stride >= 14) ?? 256;
    return Array.from({length: Math.ceil(ranks / every)}, (_, tick) => ({place: this.y.at(tick * every + 0.5), text: `${this.word()} ${tick * every}`}));
  }

  drawBody() {
    const {ranks} = this.source, ratio = Math.max(1, Math.round(devicePixelRatio)), wide = Math.max(1, Math.floor((this.width - 10 - this.left) * ratio));
    const cells = this.pixelMeans(wide), [least, most] = this.colourRange = this.rangeOf(cells), image = new ImageData(wide, ranks);
    cells.forEach((mean, cell) => {
      if (Number.isFinite(mean)) image.data.set([...rampColour(most > least ? (mean - least) / (most - least) : 0), 255], 4 * cell);
    });
    Object.assign(this.canvas, {width: wide, height: ranks});
    this.canvas.getContext("2d").putImageData(image, 0, 0);
    Object.assign(this.canvas.style, {left: `${this.left}px`, top: "8px", width: `${this.width - 10 - this.left}px`, height: `${this.height - 30}px`});
    this.drawRamp();
  }
  // Of each rank the means of the values on each of `wide` pixels. A value fills the pixels from the middle between it and the one before to the
  // middle behind it.
  pixelMeans(wide) {
    const run = this.view.detail, {ranks, stride, at} = this.source, xs = run.axes[this.view.axis], [low, high] = this.view.range;
    const sums = new Float64Array(ranks * wide), counts = new Uint32Array(ranks * wide);
    const begin = Math.max(0, Math.floor(run.rowFrom(this.view.axis, low) / stride) - 1), end = Math.min(Math.ceil(run.rows / stride), Math.floor(run.rowFrom(this.view.axis, high) / stride) + 1);
    const pixel = n => (xs[Math.min(n * stride, run.rows - 1)] - low) / (high - low) * wide;
    for (let n = begin; n < end; ++n) {
      const from = n > 0 ? (pixel(n - 1) + pixel(n)) / 2 : pixel(n) - 1, to = (n + 1) * stride < run.rows ? (pixel(n) + pixel(n + 1)) / 2 : pixel(n) + 1;
      const first = Math.max(0, Math.floor(from)), last = Math.min(wide - 1, Math.max(first, Math.ceil(to) - 1));
      for (let rank = 0; rank < ranks && first <= last; ++rank) {
        const value = at(rank, n);
        if (!Number.isFinite(value)) continue;
        for (let cell = rank * wide + first; cell <= rank * wide + last; ++cell) { sums[cell] += value; ++counts[cell]; }
      }
    }
    return sums.map((sum, cell) => counts[cell] ? sum / counts[cell] : NaN);
  }
  // Without the rare extremes, which would hide the rest.
  rangeOf(cells) {
    const sorted = cells.filter(Number.isFinite).sort(), at = part => sorted[Math.floor(part * (sorted.length - 1))];
    return sorted.length ? [at(0.01), at(0.99)] : [0, 1];
  }
  drawRamp() {
    const [least, most] = this.colourRange, unit = this.measure().unit ? ` ${this.measure().unit}` : "";
    const stops = RAMP.map(colour => `rgb(${colour.join(" ")})`).join(", ");
    this.keys.replaceChildren(element("li", {}, `${brief(least)}${unit} `,
      element("span", {class: "swatch ramp", style: `background: linear-gradient(90deg, ${stops})`, "aria-hidden": "true"}), `${brief(most)}${unit}`));
  }

  readings(value, clientY) {
    const run = this.view.detail, {ranks, stride, at} = this.source, n = Math.floor(run.rowNear(this.view.axis, value) / stride), row = n * stride;
    if (clientY !== null && clientY !== undefined)
      this.rank = Math.floor((clientY - this.area.getBoundingClientRect().top - 8) / (this.height - 30) * ranks);
    this.rank = Math.min(Math.max(this.rank, 0), ranks - 1);
    const unit = this.measure().unit ? ` ${this.measure().unit}` : "", measured = run.values("rank_milliseconds.measured_step")?.[row];
    const late = this.measure().timed && Number.isFinite(measured) ? ` (of step ${measured})` : "";
    const all = Array.from({length: ranks}, (_, rank) => at(rank, n)).filter(Number.isFinite).sort((a, b) => a - b);
    const reading = (name, number) => ({run, row, name, text: exact(number) + unit});
    const own = {...reading(`${this.word()} ${this.rank}: ${this.measure().name}${late}`, at(this.rank, n)), y: this.y.at(this.rank + 0.5), colour: "var(--text)"};
    return all.length > 1 ? [own, reading("least of all", all[0]), reading("median", all[(all.length - 1) >> 1]), reading("most of all", all.at(-1))] : [own];
  }
  otherKey(key) {
    if (key !== "ArrowUp" && key !== "ArrowDown") return false;
    this.rank = Math.min(Math.max(this.rank + (key === "ArrowDown" ? 1 : -1), 0), this.source.ranks - 1);
    return true;
  }
  tsv() {
    const run = this.view.detail, {ranks, stride, at} = this.source, [low, high] = this.view.range, all = Array.from({length: ranks}, (_, rank) => rank);
    const lines = [["step", ...all.map(rank => `${this.word()} ${rank}`)].join("\t")];
    for (let n = Math.ceil(run.rowFrom(this.view.axis, low) / stride); n * stride < run.rows && run.axes[this.view.axis][n * stride] <= high; ++n)
      lines.push([run.step[n * stride], ...all.map(rank => at(rank, n)).map(value => Number.isFinite(value) ? value : "")].join("\t"));
    return lines.join("\n") + "\n";
  }
}
