// Undoes column_code.cpp: columns of numbers from deflated planes of bytes.

async function inflate(base64) {
  const letters = atob(base64);
  const bytes = new Uint8Array(letters.length);
  for (let at = 0; at < letters.length; ++at) bytes[at] = letters.charCodeAt(at);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// The next `count` bytes of each of some parts; a cursor for each part.
class Parts {
  constructor(bytes, lengths) {
    let begin = 0;
    this.bytes = bytes;
    this.at = lengths.map(length => (begin += length) - length);
  }
  take(part, count) {
    const begin = this.at[part];
    this.at[part] += count;
    return this.bytes.subarray(begin, begin + count);
  }
}

const FIRST_PART = {whole: 0, short: 4, real: 8, rows: 16};

function decodeWhole(head, count, parts) {
  const bits = new Uint32Array(count);
  for (let plane = 0; plane < head.planes; ++plane) {
    const bytes = parts.take(FIRST_PART.whole + plane, count);
    for (let at = 0; at < count; ++at) bits[at] |= bytes[at] << (8 * plane);
  }
  const values = new Float64Array(count);
  let mean = head.first;
  for (let at = 0; at < count; ++at) {
    const whole = (Math.floor(mean + 0.5) + ((bits[at] >>> 1) ^ -(bits[at] & 1))) | 0;
    mean += (whole - mean) * head.takes;
    values[at] = whole / head.per;
  }
  return values;
}

// Numbers of `size` bytes, whose planes begin at a part.
function decodePlanes(first, size, count, parts) {
  const bytes = new Uint8Array(count * size);
  for (let plane = 0; plane < size; ++plane) {
    const taken = parts.take(first + plane, count);
    for (let at = 0; at < count; ++at) bytes[at * size + plane] = taken[at];
  }
  return new DataView(bytes.buffer);
}

function decodeShort(count, parts) {
  const view = decodePlanes(FIRST_PART.short, 4, count, parts);
  return Float64Array.from({length: count}, (_, at) => Number(view.getFloat32(4 * at, true).toPrecision(6)));
}

function decodeReal(count, parts) {
  const view = decodePlanes(FIRST_PART.real, 8, count, parts);
  return Float64Array.from({length: count}, (_, at) => view.getFloat64(8 * at, true));
}

// Where the bits are set there is a value; elsewhere there is none (NaN). Only every `stride`-th row has a place.
function spread(values, bits, rows, stride) {
  const all = new Float64Array(Math.ceil(rows / stride)).fill(NaN);
  for (let row = 0, at = 0; row < rows; ++row) if (bits[row >> 3] >> (row & 7) & 1) all[Math.floor(row / stride)] = values[at++];
  return all;
}

// [{key, index, values, sparse}]: a value for every strideOf(key)-th row of the log. holes: rows that have no values at all.
function decodeColumns(block, bytes, rows, holes, strideOf = () => 1) {
  const parts = new Parts(bytes, block.parts);
  return block.heads.map(head => {
    const count = head.count ?? rows;
    const bits = head.count === undefined ? null : parts.take(FIRST_PART.rows, (rows + 7) >> 3);
    const values = head.code === "whole" ? decodeWhole(head, count, parts)
      : head.code === "short" ? decodeShort(count, parts) : decodeReal(count, parts);
    return {key: head.key, index: head.index ?? -1, values: bits ? spread(values, bits, rows, strideOf(head.key)) : values, sparse: 2 * count < rows - holes};
  });
}
