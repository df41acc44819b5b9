// A figure over the common axis: frame, marks, cursor, zoom, keyboard. What is drawn in it is the business of the classes below.

const AXIS_NAMES = {step: "step", tokens: "tokens", hours: "hours of steps"};
const MARK_WORDS = {lives: "life", plans: "plan", checkpoints: "checkpoint", warnings: "warning"};

class Plot {
  // options: title, hint, height, wide
  constructor(parent, view, options) {
    this.view = view;
    this.options = options;
    this.left = options.left ?? 58;
    this.area = element("div", {class: "plot", tabindex: 0, role: "application", "aria-roledescription": "figure",
      "aria-label": `${options.title}. Arrow keys read values, plus and minus zoom, 0 shows the whole.`});
    this.caption = element("figcaption", {}, element("h3", {}, options.title), element("span", {class: "hint"}, options.hint ?? ""));
    this.keys = element("ul", {class: "keys"});
    this.figure = element("figure", options.wide ? {class: "wide"} : {}, this.caption, this.area, this.keys);
    this.copyButton = element("button", {type: "button", "aria-label": `Copy the data of ${options.title} in view`,
      onclick: () => copyText(this.tsv(), this.copyButton)}, "Copy");
    this.caption.append(this.copyButton);
    parent.append(this.figure);
    this.listen();
    view.listeners.push(() => this.redraw());
    this.width = 0;
    new ResizeObserver(() => { if (Math.abs(this.area.clientWidth - this.width) > 0.5) this.redraw(); }).observe(this.area);
  }

  // For the classes below.
  runs() { return this.view.shown; }
  hasData() { return true; }
  valueRange() { return [0, 1]; }   // [low, high, log]
  drawBody() {}
  readings() { return []; }         // of a place on the axis: [{colour, name, text, row}]
  tsv() { return ""; }
  valueTicks() {
    return this.y.ticks(Math.max(2, Math.floor(this.height / 45))).map(tick => ({place: this.y.at(tick), text: Math.abs(tick) >= 1e4 ? brief(tick) : tickText(tick)}));
  }

  redraw() {
    this.figure.hidden = !this.hasData();
    if (this.figure.hidden) return;
    this.width = this.area.clientWidth;
    if (this.width < 40) return;
    const height = this.height = this.options.height ?? 210, [low, high] = this.view.range;
    this.x = new Scale(low, high, this.left, this.width - 10);
    const [least, most, log] = this.valueRange();
    this.y = new Scale(least, most, height - 22, 8, log);
    this.picture = svg("svg", {height, viewBox: `0 0 ${this.width} ${height}`, "aria-hidden": "true"});
    this.drawFrame();
    const clip = `clip-${Plot.count = (Plot.count ?? 0) + 1}`, frame = svg("clipPath", {id: clip});
    frame.append(svg("rect", {x: this.left, y: 0, width: this.width - 10 - this.left, height: height - 21}));
    this.body = svg("g", {"clip-path": `url(#${clip})`});
    this.picture.append(frame, this.body);
    this.drawBody();
    this.drawMarks();
    this.over = svg("g");
    this.picture.append(this.over);
    this.area.querySelector("svg")?.remove();
    this.area.append(this.picture);
  }

  drawFrame() {
    const grid = this.options.grid ?? true, bottom = this.height - 22, right = this.width - 10, add = (name, attributes, text) => this.picture.append(svg(name, attributes, text));
    for (const {place, text} of this.valueTicks()) {
      if (grid) add("line", {class: "grid", x1: this.left, x2: right, y1: place, y2: place});
      add("text", {x: this.left - 6, y: place + 4, "text-anchor": "end"}, text);
    }
    for (const tick of this.x.ticks(Math.max(2, Math.floor((right - this.left) / 55)))) {
      const place = this.x.at(tick);
      if (grid) add("line", {class: "grid", x1: place, x2: place, y1: 8, y2: bottom});
      add("text", {x: Math.min(place, right - 12), y: this.height - 7, "text-anchor": "middle"}, place < this.left + 15 ? "" : tickText(tick));
    }
    add("text", {x: this.left - 6, y: this.height - 7, "text-anchor": "end"}, this.view.axis);
    add("line", {class: "axis", x1: this.left, x2: right, y1: bottom, y2: bottom});
  }

  // [{run, kind, x, text}] in view, of the kinds that are wanted.
  marks() {
    const [low, high] = this.view.range, found = [];
    for (const run of this.runs())
      for (const mark of run.marks) {
        if (!this.view.marks[mark.kind]) continue;
        const x = run.placeOf(this.view.axis, mark.step);
        if (x >= low && x <= high) found.push({run, kind: mark.kind, x, text: mark.text, label: mark.label});
      }
    return found;
  }

  drawMarks() {
    const bottom = this.height - 22, taken = new Set();
    this.drawn = this.marks();
    for (const mark of this.drawn) {
      const place = this.x.at(mark.x), spot = `${mark.kind}${mark.run.number}${Math.round(place / 3)}`;
      if (taken.has(spot)) continue;
      taken.add(spot);
      const own = `--own: ${this.runs().length > 1 ? mark.run.colour : "var(--faint)"}`;
      if (mark.kind === "checkpoints")
        this.body.append(svg("path", {class: "flag", style: own, d: `M${place} ${bottom - 6}l4 6h-8z`}));
      else
        this.body.append(svg("line", {class: `mark ${MARK_WORDS[mark.kind]}`, style: own, x1: place, x2: place, y1: 8, y2: bottom}));
      if (mark.kind === "lives")
        this.body.append(svg("text", {class: "flagged", style: own, x: place + 3, y: 17}, mark.label));
    }
  }

  // Cursor, tip and zoom.
  listen() {
    const area = this.area, place = event => event.clientX - area.getBoundingClientRect().left;
    let from = null;
    area.addEventListener("pointerdown", event => {
      if (event.button !== 0 || !this.x) return;
      from = place(event);
      area.setPointerCapture(event.pointerId);
    });
    area.addEventListener("pointermove", event => {
      if (!this.x) return;
      if (from !== null && Math.abs(place(event) - from) > 3) this.drawSelection(from, place(event));
      else this.point(this.x.back(place(event)), event.clientX, event.clientY);
    });
    area.addEventListener("pointerup", event => {
      const to = place(event), begin = from;
      from = null;
      if (begin === null || Math.abs(to - begin) <= 3) return;
      const ends = [begin, to].map(end => this.x.back(Math.min(Math.max(end, this.left), this.width - 10))).sort((a, b) => a - b);
      this.view.zoom(...ends);
    });
    area.addEventListener("pointercancel", () => { from = null; this.leave(); });
    area.addEventListener("pointerleave", () => { if (from === null) this.leave(); });
    area.addEventListener("dblclick", () => this.view.reset());
    area.addEventListener("keydown", event => this.press(event));
    area.addEventListener("blur", () => this.leave());
  }

  drawSelection(from, to) {
    hideTip();
    this.over.replaceChildren(svg("rect", {class: "select", x: Math.min(from, to), y: 8, width: Math.abs(to - from), height: this.height - 30}));
  }

  leave() {
    this.over?.replaceChildren();
    hideTip();
  }

  // Reads the values at a place of the axis; the tip stands beside a point of the window.
  point(value, clientX, clientY) {
    const [low, high] = this.view.range;
    const readings = this.readings(Math.min(Math.max(value, low), high), clientY);
    if (!readings.length) return this.leave();
    const first = readings[0], axis = this.view.axis, x = this.x.at(first.run.axes[axis][first.row]);
    this.at = {run: first.run, row: first.row};
    this.over.replaceChildren(svg("line", {class: "cursor", x1: x, x2: x, y1: 8, y2: this.height - 22}));
    for (const reading of readings)
      if (reading.y !== undefined)
        this.over.append(svg("circle", {class: "dot", style: `--own: ${reading.colour}`, cx: this.x.at(reading.run.axes[axis][reading.row]), cy: reading.y, r: 3}));
    const near = this.drawn.filter(mark => Math.abs(this.x.at(mark.x) - x) < 5);
    showTip(readings, near, clientX, clientY);
    return readings;
  }

  press(event) {
    const view = this.view, [low, high] = view.range, run = this.at?.run.shown || this.at?.run === view.detail ? this.at.run : this.runs()[0];
    if (!run || event.ctrlKey || event.metaKey || event.altKey) return;
    const [begin, end] = [run.rowFrom(view.axis, low), run.rowFrom(view.axis, high + 1e-9 * (high - low))].map(row => Math.min(row, run.rows - 1));
    let row = this.at && this.at.run === run ? Math.min(Math.max(this.at.row, begin), end) : begin - 1;
    const middle = this.at ? run.axes[view.axis][Math.max(row, begin)] : (low + high) / 2;
    const stride = event.shiftKey ? 10 : 1, page = Math.max(1, Math.round((end - begin) / 10));
    const moves = {ArrowRight: stride, ArrowLeft: -stride, PageDown: page, PageUp: -page};
    if (event.key in moves) row += moves[event.key];
    else if (event.key === "Home") row = begin;
    else if (event.key === "End") row = end;
    else if (event.key === "+" || event.key === "=") view.zoom(middle - (middle - low) / 2, middle + (high - middle) / 2);
    else if (event.key === "-") view.zoom(middle - (middle - low) * 2, middle + (high - middle) * 2);
    else if (event.key === "0") view.reset();
    else if (event.key === "Escape") { this.leave(); return; }
    else if (!this.otherKey(event.key)) return;
    event.preventDefault();
    if (["+", "=", "-", "0"].includes(event.key)) return;
    row = Math.min(Math.max(row, begin), end);
    const box = this.area.getBoundingClientRect(), value = run.axes[view.axis][row];
    const readings = this.point(value, box.left + this.x.at(value), null);
    if (readings) say(readings);
  }
  otherKey() { return false; }
}

function tipElement() { return document.getElementById("tip"); }
function hideTip() { tipElement().hidden = true; }

function whereText(reading) {
  const {run, row} = reading;
  return `step ${run.step[row]}, ${brief(run.axes.tokens[row])} tokens, ${durationText(3600 * run.axes.hours[row])}`;
}

function showTip(readings, marks, x, y) {
  const tip = tipElement(), rows = [];
  let place = "";
  for (const reading of readings) {
    const where = whereText(reading);
    if (where !== place) rows.push(element("tr", {}, element("td", {colspan: 2}, element("strong", {}, (place = where)))));
    rows.push(element("tr", {}, element("td", {}, reading.colour ? swatch(reading.colour) : "", reading.name), element("td", {class: "number"}, reading.text)));
  }
  tip.replaceChildren(element("table", {}, element("tbody", {}, ...rows)));
  for (const mark of marks.slice(0, 4)) tip.append(element("div", {class: "event"}, mark.text));
  tip.hidden = false;
  const box = tip.getBoundingClientRect(), top = y ?? 60;
  tip.style.left = `${Math.max(4, x + 16 + box.width < innerWidth ? x + 16 : x - 16 - box.width)}px`;
  tip.style.top = `${Math.max(4, Math.min(top + 14, innerHeight - box.height - 6))}px`;
}

function say(readings) {
  document.getElementById("spoken").textContent =
    `${whereText(readings[0])}. ` + readings.map(reading => `${reading.name}: ${reading.text}`).join(", ");
}

// Lines of all runs that are shown. options.series(run): [{name, values, sparse, faint, dash, unit}]; options.log: as it begins.
class LineChart extends Plot {
  constructor(parent, view, options) {
    super(parent, view, options);
    this.log = options.log ?? false;
    this.cache = new Map();
    this.logButton = element("button", {type: "button", "aria-pressed": this.log, onclick: () => {
      this.log = !this.log;
      this.logButton.setAttribute("aria-pressed", this.log);
      this.redraw();
    }}, "log");
    this.logButton.setAttribute("aria-label", `${options.title}: logarithmic axis`);
    this.copyButton.before(this.logButton);
  }
  series(run) {
    if (!this.cache.has(run)) this.cache.set(run, this.options.series(run).filter(one => one.values && one.values.some(Number.isFinite)));
    return this.cache.get(run);
  }
  allSeries() {
    // Of a page with several runs a colour is a run's, also in a figure that only one of them has.
    const many = !this.options.ofDetail && this.view.runs.length > 1;
    return this.runs().flatMap(run => this.series(run).map((one, number) => ({...one, run,
      colour: many ? run.colour : `var(--c${number % RUN_COLOURS})`,
      dash: many ? run.dash || ["", "5 3", "2 2", "8 3 2 3"][number % 4] : "",
      label: many ? (one.name ? `${run.name}: ${one.name}` : run.name) : one.name || this.options.title})));
  }
  hasData() { return this.view.runs.some(run => this.series(run).length); }
  runs() { return this.options.ofDetail ? [this.view.detail] : this.view.shown.filter(run => this.series(run).length); }

  valueRange() {
    let low = Infinity, high = -Infinity;
    for (const {run, values} of this.allSeries()) {
      const [begin, end] = rowsInView(run, this.view);
      for (let row = begin; row < end; ++row) {
        const value = values[row];
        if (!Number.isFinite(value) || (this.log && value <= 0)) continue;
        if (value < low) low = value;
        if (value > high) high = value;
      }
    }
    if (low > high) return [0, 1, false];
    if (this.log) return low < high ? [low * 0.95, high * 1.05, true] : [low / 2, high * 2, true];
    if (this.options.zero) low = Math.min(low, 0);
    const room = 0.05 * (high - low || Math.abs(high) || 1);
    return [this.options.zero && low === 0 ? 0 : low - room, high + room, false];
  }

  drawBody() {
    for (const one of this.allSeries()) {
      const [begin, end] = rowsInView(one.run, this.view), xs = one.run.axes[this.view.axis];
      const draw = (values, opacity) => this.body.append(svg("path", {class: "curve",
        style: `--own: ${one.colour}; stroke-dasharray: ${one.dash}; stroke-opacity: ${opacity}`,
        d: linePath(xs, values, begin, end, this.x, this.y, one.sparse)}));
      if (one.dots) {
        this.drawDots(one, begin, end, xs);
        continue;
      }
      const smooth = this.options.smooth && !one.sparse ? this.view.smooth : 1;
      draw(one.values, smooth > 1 ? 0.25 : 1);
      if (smooth > 1) draw(smoothed(one.values, smooth), 1);
      if (one.sparse && end - begin < 4000) this.drawDots(one, begin, end, xs);
    }
    const all = this.allSeries();
    this.keys.replaceChildren(...(all.length > 1 ? all.map(one => element("li", {}, lineSwatch(one.colour, one.dash), one.label)) : []));
  }
  drawDots(one, begin, end, xs) {
    for (let row = begin; row < end; ++row)
      if (Number.isFinite(one.values[row]) && !(this.log && one.values[row] <= 0))
        this.body.append(svg("circle", {class: "dot", style: `--own: ${one.colour}`, cx: this.x.at(xs[row]), cy: this.y.at(one.values[row]), r: 2.4}));
  }

  readings(value) {
    return this.allSeries().flatMap(one => {
      const row = one.run.rowNear(this.view.axis, value), found = one.values[row];
      if ((one.sparse || one.dots) && !Number.isFinite(found)) return [];
      const y = Number.isFinite(found) && !(this.log && found <= 0) ? this.y.at(found) : undefined;
      return [{run: one.run, row, colour: one.colour, name: one.label, text: exact(found) + (this.options.unit ? ` ${this.options.unit}` : ""), y}];
    });
  }

  tsv() {
    const all = this.allSeries(), lines = [["run", "step", "name", "value"].join("\t")];
    for (const one of all) {
      const [begin, end] = [one.run.rowFrom(this.view.axis, this.view.range[0]), rowsInView(one.run, this.view)[1]];
      for (let row = begin; row < end; ++row)
        if (Number.isFinite(one.values[row]) && one.run.axes[this.view.axis][row] <= this.view.range[1])
          lines.push([one.run.name, one.run.step[row], one.name || this.options.title, one.values[row]].join("\t"));
    }
    return lines.join("\n") + "\n";
  }
}
