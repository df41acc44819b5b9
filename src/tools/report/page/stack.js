// Parts of a whole, one on the other, of the run in detail. Between two pixels the means of the steps are drawn: parts and whole fit then.

// What computes, what exchanges, what aggregates and updates, and what is beside the step, each in shades of one hue.
const PHASE_HUES = [
  [/^(gather|reduce|scatter)/, 28], [/^(aggregate|optimizer|orthogonalise|norms of tensors)/, 150],
  [/^(read|evaluation|checkpoint|report)/, 285], [/./, 212],
];

function phaseColours(names) {
  const seen = new Map();
  return new Map(names.map(name => {
    const [, hue] = PHASE_HUES.find(([pattern]) => pattern.test(name)), number = seen.get(hue) ?? 0;
    seen.set(hue, number + 1);
    return [name, name === "other" ? "var(--line)" : `hsl(${hue + 4 * (number % 3)} ${70 - 12 * (number % 4)}% ${38 + 8 * (number % 5)}%)`];
  }));
}

class StackChart extends Plot {
  // options.parts(run): [{name, values}], the largest first
  constructor(parent, view, options) {
    super(parent, view, options);
    this.cache = new Map();
  }
  runs() { return [this.view.detail]; }
  parts() {
    const run = this.view.detail;
    if (!this.cache.has(run)) {
      const parts = this.options.parts(run), colours = phaseColours(parts.map(part => part.name));
      this.cache.set(run, parts.map(part => ({...part, colour: colours.get(part.name)})));
    }
    return this.cache.get(run);
  }
  hasData() { return this.parts().length > 0; }

  // [{x, sums}] by pixel; sums[n]: of the first n parts.
  columns() {
    const run = this.view.detail, parts = this.parts(), xs = run.axes[this.view.axis], columns = [];
    const [begin, end] = rowsInView(run, this.view);
    let pixel = null, count = 0;
    for (let row = begin; row < end; ++row) {
      const place = this.x.at(xs[row]);
      if (pixel === null || Math.floor(place) !== pixel) {
        pixel = Math.floor(place);
        count = 0;
        columns.push({x: place, sums: new Float64Array(parts.length + 1)});
      }
      const {sums} = columns.at(-1);
      ++count;
      let sum = 0;
      for (let part = 0; part < parts.length; ++part) {
        const value = parts[part].values[row];
        sum += Number.isFinite(value) ? value : 0;
        sums[part + 1] += (sum - sums[part + 1]) / count;
      }
    }
    return columns;
  }
  valueRange() {
    this.drawnColumns = this.columns();
    const tops = this.drawnColumns.map(column => column.sums.at(-1)).sort((a, b) => a - b);
    const high = tops.at(-1) ?? 1, usual = tops[Math.floor(0.98 * (tops.length - 1))] ?? 1;
    return [0, high > 3 * usual && this.view.seen === null ? 1.6 * usual || 1 : 1.04 * high || 1, false];
  }
  drawBody() {
    const columns = this.drawnColumns, parts = this.parts();
    parts.forEach((part, number) => {
      const edge = (index, backwards) => {
        const points = columns.map(column => `${column.x.toFixed(1)} ${this.y.at(column.sums[index]).toFixed(1)}`);
        return (backwards ? points.reverse() : points).join("L");
      };
      this.body.append(svg("path", {class: "band", style: `--own: ${part.colour}`, d: `M${edge(number + 1)}L${edge(number, true)}Z`}));
    });
    this.keys.replaceChildren(...parts.map(part => element("li", {}, swatch(part.colour), part.name)));
  }
  readings(value) {
    const run = this.view.detail, row = run.rowNear(this.view.axis, value);
    return this.parts().map(part => ({run, row, colour: part.colour, name: part.name, text: `${exact(part.values[row])} ${this.options.unit}`}))
      .filter((_, number) => this.parts()[number].values[row]);
  }
  tsv() {
    const run = this.view.detail, parts = this.parts(), [low, high] = this.view.range;
    const lines = [["step", ...parts.map(part => part.name)].join("\t")];
    for (let row = run.rowFrom(this.view.axis, low); row < run.rows && run.axes[this.view.axis][row] <= high; ++row)
      lines.push([run.step[row], ...parts.map(part => part.values[row])].join("\t"));
    return lines.join("\n") + "\n";
  }
}
