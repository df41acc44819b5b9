// Axes, and lines through very many points.

function linearTicks(low, high, count) {
  const rough = (high - low) / Math.max(count, 1), power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find(factor => factor * power >= rough) * power, ticks = [];
  for (let tick = Math.ceil(low / step - 1e-9) * step; tick <= high + 1e-9 * step; tick += step) ticks.push(Math.abs(tick) < 1e-9 * step ? 0 : tick);
  return ticks;
}

function logTicks(low, high, count) {
  const decades = Math.log10(high / low), ticks = [];
  const factors = decades <= count / 3 ? [1, 2, 5] : [1], every = Math.max(1, Math.ceil(decades / count));
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); ++power)
    if (power % every === 0)
      for (const factor of factors) {
        const tick = factor * 10 ** power;
        if (tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9)) ticks.push(tick);
      }
  return ticks.length >= 2 ? ticks : linearTicks(low, high, count);
}

class Scale {
  constructor(low, high, from, to, log = false) {
    Object.assign(this, {low, high, from, to, log});
    this.factor = (to - from) / (log ? Math.log(high / low) : high - low);
  }
  at(value) { return this.from + (this.log ? Math.log(value / this.low) : value - this.low) * this.factor; }
  back(place) {
    const part = (place - this.from) / this.factor;
    return this.log ? this.low * Math.exp(part) : this.low + part;
  }
  ticks(count) { return this.log ? logTicks(this.low, this.high, count) : linearTicks(this.low, this.high, count); }
}

// The rows of a run that are in view, and one more at each side.
function rowsInView(run, view) {
  const [low, high] = view.range;
  return [Math.max(0, run.rowFrom(view.axis, low) - 1), Math.min(run.rows, run.rowFrom(view.axis, high) + 1)];
}

// A path through the values of rows [begin, end): of all that fall on one pixel the first, the least, the largest and the last.
// Where values are missing the line ends, unless they are rare (sparse).
function linePath(xs, values, begin, end, x, y, sparse) {
  let path = "", pen = false, pixel = null;
  let first, least, most, last, place;
  const point = value => {
    path += `${pen ? "L" : "M"}${place.toFixed(1)} ${y.at(value).toFixed(1)}`;
    pen = true;
  };
  const flush = () => {
    if (pixel === null) return;
    point(first);
    if (least !== first && least !== last) point(least);
    if (most !== first && most !== last) point(most);
    if (last !== first) point(last);
    pixel = null;
  };
  for (let row = begin; row < end; ++row) {
    const value = values[row];
    if (!Number.isFinite(value) || (y.log && value <= 0)) {
      if (!sparse) { flush(); pen = false; }
      continue;
    }
    const where = x.at(xs[row]);
    if (pixel === null || Math.floor(where) !== pixel) {
      flush();
      pixel = Math.floor(where);
      place = where;
      first = least = most = value;
    }
    if (value < least) least = value;
    if (value > most) most = value;
    last = value;
  }
  flush();
  return path;
}

// The mean of `width` values up to each; a missing one counts in none.
function smoothed(values, width) {
  if (width <= 1) return values;
  const out = new Float64Array(values.length).fill(NaN), ring = [];
  let sum = 0;
  for (let row = 0; row < values.length; ++row) {
    if (!Number.isFinite(values[row])) continue;
    ring.push(values[row]);
    sum += values[row];
    if (ring.length > width) sum -= ring.shift();
    out[row] = sum / ring.length;
  }
  return out;
}
