#!/usr/bin/env python3
"""Predicted steps of `plan` beside the steps of real runs, on this machine (docs/results/planner.md).

  bench/plan_accuracy.py --program P --work DIR [--repeats 3] [--ranks 1,2] [--seconds 100] [--quick]

Calibrates once for each number of ranks, then goes through models and shapes: `plan` predicts from the tables alone, a run of
some steps measures (median step of each run; the spread is that of the runs). Prints one line for each and the mean and the 90 %
quantile of the relative errors. The tables know none of these shapes.
"""
import argparse
import itertools
import json
import pathlib
import statistics
import subprocess

GPT = dict(heads=8, ffn=0, norm="layernorm", activation="gelu", position="learned", bias=True)
LLAMA = dict(heads=8, kv_heads=4, ffn=0, norm="rmsnorm", activation="swiglu", position="rope", bias=False, tied_embeddings=False)
MODELS = {
    "gpt-3m": dict(GPT, layers=4, hidden=192, vocab=4096, context=128),
    "gpt-11m": dict(GPT, layers=6, hidden=320, vocab=8192, context=256),
    "gpt-30m": dict(GPT, layers=6, hidden=512, vocab=16384, context=512),
    "llama-8m": dict(LLAMA, layers=5, hidden=256, vocab=8192, context=256),
    "llama-25m": dict(LLAMA, layers=6, hidden=448, vocab=12288, context=512),
}
SHAPES = {1: [(1, 1, 1, 1)], 2: [(1, 2, 1, 1), (1, 1, 2, 1), (1, 1, 1, 2), (2, 1, 1, 1)],
          4: [(1, 4, 1, 1), (1, 2, 2, 1), (1, 1, 2, 2), (2, 1, 2, 1)], 8: [(1, 2, 2, 2), (2, 2, 2, 1), (1, 8, 1, 1)]}
SIZES = [(4, 0, "none"), (8, 2, "none"), (4, 2, "block")]


def words(value):
    return json.dumps(value) if isinstance(value, str) else str(value).lower()


def input_text(model, sequences, micro, recompute, compute):
    keys = "\n".join(f"{key} = {words(value)}" for key, value in model.items())
    return f"""version = 1
[run]
steps = 1000
[model]
{keys}
[data]
train = "text.bin"
format = "bytes"
[batch]
sequences = {sequences}
micro = {micro}
recompute = "{recompute}"
[precision]
compute = "{compute}"
[hetero]
speeds = "equal"
[balance]
kind = "off"
[checkpoint]
every_minutes = 0
[debug]
threads = 1
"""


class Bench:
    def __init__(self, args):
        self.args, self.work = args, args.work
        self.work.mkdir(parents=True, exist_ok=True)
        data = bytes(i * 7919 % 251 for i in range(1 << 20))
        (self.work / "text.bin").write_bytes(data)

    def program(self, *command, ranks=1):
        launch = ["mpirun", "-n", str(ranks), "--oversubscribe"] if ranks > 1 else []
        done = subprocess.run(launch + [self.args.program, *map(str, command)], cwd=self.work, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{command}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout

    def calibrate(self, ranks):
        file = self.work / f"cluster-{ranks}.toml"
        if not file.exists():
            self.program("calibrate", "-o", file.name, "--class", f"ranks{ranks}", "--seconds", self.args.seconds, "--threads", 1,
                         ranks=ranks)
        return file.name

    def predicted(self, shape, cluster):
        d, p, q, r = shape
        out = self.program("plan", "input.toml", "--cluster", cluster, "--json", "--set", f"mesh.replicas={d}",
                           "--set", f"mesh.cuboid=[{p},{q},{r}]")
        return json.loads(out)["options"][0]

    def measured(self, shape, seconds):
        """Median step of a run about `seconds` long, without its first steps."""
        d, p, q, r = shape
        steps = max(8, min(200, int(self.args.run_seconds / seconds)))
        folder = self.work / "run"
        subprocess.run(["rm", "-rf", folder], check=True)
        self.program("input.toml", "-d", "run", "-q", "--set", f"mesh.replicas={d}", "--set", f"mesh.cuboid=[{p},{q},{r}]",
                     "--set", f"run.steps={steps}", ranks=d * p * q * r)
        times = [json.loads(line)["seconds"] for line in open(folder / "log.jsonl") if '"seconds"' in line and '"step"' in line]
        return statistics.median(times[3:])

    def row(self, name, shape, size, compute):
        ranks = shape[0] * shape[1] * shape[2] * shape[3]
        (self.work / "input.toml").write_text(input_text(MODELS[name], *size, compute))
        option = self.predicted(shape, self.calibrate(ranks))
        guess = option["step_seconds"]
        runs = [self.measured(shape, guess) for _ in range(self.args.repeats)]
        seconds = statistics.median(runs)
        spread = (max(runs) - min(runs)) / seconds
        error = guess / seconds - 1
        print(f"| {name} | {shape[0]} x ({shape[1]} x {shape[2]} x {shape[3]}) | {size[0]} / {size[1]} {size[2]} | {compute} "
              f"| {1e3 * guess:.2f} | {1e3 * seconds:.2f} | {100 * error:+.1f} % | {100 * spread:.1f} % |", flush=True)
        return dict(name=name, shape=shape, size=size, compute=compute, predicted=guess, measured=seconds, spread=spread,
                    terms=option["terms"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True, type=pathlib.Path)
    parser.add_argument("--work", required=True, type=pathlib.Path)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--ranks", default="1,2")
    parser.add_argument("--seconds", type=float, default=100, help="of each calibration")
    parser.add_argument("--run-seconds", type=float, default=1.5, help="of each run")
    parser.add_argument("--quick", action="store_true", help="every fourth combination")
    args = parser.parse_args()
    args.program, args.work = args.program.resolve(), args.work.resolve()
    bench = Bench(args)
    print("| model | replicas x (p q r) | sequences / micro-batch | type | predicted ms | measured ms | error | spread of runs |")
    print("|---|---|---|---|---:|---:|---:|---:|")
    shapes = [shape for ranks in map(int, args.ranks.split(",")) for shape in SHAPES[ranks]]
    rows = []
    for number, (name, shape, size) in enumerate(itertools.product(MODELS, shapes, SIZES)):
        if not args.quick or number % 4 == 0:
            rows.append(bench.row(name, shape, size, "fp32"))
    (bench.work / "rows.json").write_text(json.dumps(rows))
    errors = sorted(abs(row["predicted"] / row["measured"] - 1) for row in rows)
    print(f"\n{len(rows)} combinations: mean error {100 * statistics.mean(errors):.1f} %, median "
          f"{100 * statistics.median(errors):.1f} %, 90 % below {100 * errors[int(0.9 * (len(errors) - 1))]:.1f} %, worst "
          f"{100 * errors[-1]:.1f} %")


if __name__ == "__main__":
    main()
