// Numbers and elements as people read them.

// As the log has it, to six digits; whole numbers with all of theirs.
function exact(value) {
  if (!Number.isFinite(value)) return "-";
  return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(6)));
}

// For axes: 1.5k, 20M, 0.05.
function brief(value) {
  const size = Math.abs(value);
  if (size >= 1e15 || (size > 0 && size < 1e-4)) return value.toExponential(1).replace(/\.0e/, "e").replace("e+", "e");
  for (const [unit, letter] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]])
    if (size >= unit) return String(Number((value / unit).toPrecision(4))) + letter;
  return String(Number(value.toPrecision(4)));
}

// The same where neighbours differ in later digits.
function tickText(value) {
  const size = Math.abs(value);
  if (size >= 1e5) return [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]].map(([unit, letter]) => size >= unit ? Number((value / unit).toPrecision(6)) + letter : "").find(text => text);
  return size > 0 && size < 1e-4 ? brief(value) : String(Number(value.toPrecision(6)));
}

function dateText(seconds) {
  if (!Number.isFinite(seconds)) return "-";
  const date = new Date(1000 * seconds), two = number => String(number).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

function durationText(seconds) {
  if (!Number.isFinite(seconds)) return "-";
  if (seconds < 60) return `${exact(Number(seconds.toPrecision(3)))} s`;
  const whole = Math.round(seconds), two = number => String(number).padStart(2, "0");
  return `${Math.floor(whole / 3600)}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`;
}

// element("p", {id: "x", onclick: f}, child, "text", ...)
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes))
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key.startsWith("aria-")) made.setAttribute(key, value);
    else if (value !== undefined && value !== null && value !== false) made.setAttribute(key, value === true ? "" : value);
  made.append(...children.filter(child => child !== null && child !== undefined));
  return made;
}

function svg(name, attributes = {}, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function swatch(colour) {
  return element("span", {class: "swatch", style: `--own: ${colour}`, "aria-hidden": "true"});
}

// The same for a line: its dashes tell the lines of one colour apart.
function lineSwatch(colour, dash) {
  const made = svg("svg", {class: "line", width: 22, height: 11, "aria-hidden": "true"});
  made.append(svg("line", {x1: 0, x2: 22, y1: 6, y2: 6, style: `stroke: ${colour}; stroke-dasharray: ${dash}`}));
  return made;
}

// Tab-separated text into the clipboard; pages from a disk may have no clipboard of their own.
async function copyText(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = element("textarea", {class: "unseen"});
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  const before = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = before; }, 1200);
}
