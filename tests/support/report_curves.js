// Which curves a page of `transformer3d report` draws, in which colours: its own script, on a document that only takes elements.
// report_curves.js PAGE; the page is of two runs or more, of which the first has validations.
const fs = require("fs");
const page = fs.readFileSync(process.argv[2], "utf8");
const script = page.match(/<script type="module">([\s\S]*?)<\/script>/)[1];
const json = JSON.parse(page.match(/id="report">([\s\S]*?)<\/script>/)[1]);

const blocks = Object.fromEntries([...page.matchAll(/<script[^>]* id="((?:steps|ranks)-\d+)">([\s\S]*?)<\/script>/g)].map(([, id, text]) => [id, text]));
const taken = () => ({style: {}, dataset: {}, setAttribute() {}, append() {}, prepend() {}, before() {}, addEventListener() {}, selectedOptions: [], options: []});
const document = {createElement: taken, createElementNS: taken, createTextNode: text => text, getElementById: id => id in blocks ? {textContent: blocks[id]} : taken()};
class ResizeObserver { observe() {} }

const figures = [];
const classes = new Function("document", "ResizeObserver", "requestAnimationFrame", "figures",
  script.replace(/\nmain\(\)\.catch[\s\S]*$/, "\n") + `
  const listen = LineChart.prototype.listen;
  LineChart.prototype.listen = function () { figures.push(this); listen.call(this); };
  return {Run, View, trainingFigures, endTable};`)(document, ResizeObserver, () => {}, figures);

function expect(good, text) {
  if (good) return;
  console.error(text);
  process.exitCode = 1;
}

(async () => {
  const runs = json.runs.map((run, number) => new classes.Run(run, number));
  for (const run of runs) await run.readSteps();
  classes.trainingFigures(taken(), new classes.View(runs));
  const all = figures.flatMap(figure => figure.allSeries().map(one => ({...one, title: figure.options.title})));
  for (const one of all) expect(one.colour === one.run.colour, `${one.title}: ${one.label} has another colour than its run`);
  expect(new Set(runs.map(run => run.colour)).size === runs.length, "two runs have one colour");
  expect(all.some(one => one.run === runs[1] && one.title === "Loss"), "the second run has no loss");
  expect(figures.some(figure => new Set(figure.allSeries().map(one => one.run)).size === 1), "no figure is of one run alone: nothing is seen of its colour");
  const names = all.filter(one => one.run === runs[0] && one.title === "Loss").map(one => one.name);
  for (const part of ["first batches", "whole set"]) {
    const curve = all.find(one => one.run === runs[0] && one.name === `validation, ${part}`);
    expect(curve, `no curve of validations, ${part}: ${names}`);
    if (curve && part === "whole set") {
      const steps = [...curve.values].map((loss, row) => Number.isFinite(loss) ? runs[0].step[row] : NaN).filter(Number.isFinite);
      expect(steps.length === 1 && steps[0] === runs[0].step.at(-1), `whole sets were read after steps ${steps}`);
    }
  }
})();
