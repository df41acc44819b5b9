#!/usr/bin/env python3
"""Predicted steps of `plan` beside the steps of real runs, on this machine (docs/results/planner.md).

  bench/plan_accuracy.py --program P --work DIR [--repeats 2] [--ranks 1,2,8x64/2] [--seconds 100]

Calibrates once for each number of ranks, then goes through models and shapes. "8x64" are eight ranks that [emulate], and --slowdown of
calibrate, make 64 times slower by sleeping, so that they do not wait for cores; "/2" takes every other combination of
them. Three predictions of the median step of a run:

  tables      from cluster.toml alone, which knows none of these shapes
  left out    times two factors (computing, messages) fitted on all other shapes of as many ranks: leave one shape out. They begin at 1,
              known to a half, as those of a run do
  after 20    times the factors of a run of another plan on as many ranks, some 20 steps, right before

Prints a line for each, then mean, 90 % quantile and worst of the relative errors by ranks and of all. The spread is that of repeated runs.
"""
import argparse
import itertools
import json
import pathlib
import statistics
import subprocess

from plan_runs import QUIET, Program

GPT = dict(heads=8, ffn=0, norm="layernorm", activation="gelu", position="learned", bias=True)
LLAMA = dict(heads=8, kv_heads=4, ffn=0, norm="rmsnorm", activation="swiglu", position="rope", bias=False, tied_embeddings=False)
MODELS = {
    "gpt-3m": dict(GPT, layers=4, hidden=192, vocab=4096, context=128),
    "gpt-11m": dict(GPT, layers=6, hidden=320, vocab=8192, context=256),
    "gpt-30m": dict(GPT, layers=6, hidden=512, vocab=16384, context=256),
    "llama-8m": dict(LLAMA, layers=5, hidden=256, vocab=8192, context=256),
    "llama-25m": dict(LLAMA, layers=6, hidden=448, vocab=12288, context=256),
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
[batch]
sequences = {sequences}
micro = {micro}
recompute = "{recompute}"
[precision]
compute = "{compute}"
[hetero]
speeds = "equal"
""" + QUIET


class Bench:
    def __init__(self, args):
        self.args, self.work = args, args.work
        self.program = Program(args.program, args.work)

    def calibrate(self, ranks, slower):
        file = self.work / f"cluster-{ranks}{'' if slower == 1 else f'x{slower}'}.toml"
        if not file.exists():
            speed = ["--slowdown", ",".join([str(slower)] * ranks)] if slower > 1 else ["--threads", 1]  # one thread with either
            self.program("calibrate", "-o", file.name, "--class", f"ranks{ranks}", "--seconds", self.args.seconds,
                         "--formats", "fp32", *speed, ranks=ranks)
        return file.name

    def predicted(self, shape, cluster):
        d, p, q, r = shape
        out = self.program("plan", "input.toml", "--cluster", cluster, "--json", "--set", f"mesh.replicas={d}",
                           "--set", f"mesh.cuboid=[{p},{q},{r}]")
        return json.loads(out)["options"][0]

    def measured(self, shape, slower, seconds, least=6):
        """Medians over a run's steps but for the first two: of a step, and of computing on the rank that computes longest."""
        d, p, q, r = shape
        steps = 2 + max(least, min(60, int(self.args.run_seconds / seconds)))
        folder = self.work / "run"
        subprocess.run(["rm", "-rf", folder], check=True)
        self.program("input.toml", "-d", "run", "-q", "--set", f"mesh.replicas={d}", "--set", f"mesh.cuboid=[{p},{q},{r}]",
                     "--set", f"run.steps={steps}", "--set", f"emulate.slowdown={[slower] * (d * p * q * r) if slower > 1 else []}",
                     ranks=d * p * q * r)
        rows = [json.loads(line) for line in open(folder / "log.jsonl")]
        rows = [row for row in rows if row.get("step", 0) > 2 and "rank_milliseconds" in row]
        return (statistics.median(row["seconds"] for row in rows),
                statistics.median(max(row["rank_milliseconds"]["own"]) / 1e3 for row in rows))

    def row(self, name, shape, slower, size, compute):
        """Measured, or as an earlier call of this script measured it."""
        done = self.work / "rows.jsonl"
        known = [json.loads(line) for line in open(done)] if done.exists() else []
        for row in known:
            if (row["name"], tuple(row["shape"]), row["slower"], tuple(row["size"])) == (name, shape, slower, size):
                return row
        row = self.new_row(name, shape, slower, size, compute)
        with open(done, "a") as file:
            file.write(json.dumps(row) + "\n")
        return row

    def new_row(self, name, shape, slower, size, compute):
        ranks = shape[0] * shape[1] * shape[2] * shape[3]
        (self.work / "input.toml").write_text(input_text(MODELS[name], *size, compute))
        cluster = self.calibrate(ranks, slower)
        option = self.predicted(shape, cluster)
        other = next((s for s in SHAPES[ranks] if s != shape), shape)
        before = self.predicted(other, cluster)
        first = self.measured(other, slower, before["step_seconds"], 18)
        runs = [self.measured(shape, slower, option["step_seconds"])[0] for _ in range(self.args.repeats)]
        seconds = statistics.median(runs)
        return dict(name=name, shape=shape, slower=slower, size=size, compute=compute, ranks=ranks, measured=seconds,
                    spread=(max(runs) - min(runs)) / seconds, tables=option["step_seconds"],
                    terms=option["terms"], before=dict(terms=before["terms"], seconds=first[0], own=first[1]))


def parts(terms, slower):
    """Seconds of computing, of waiting at products, of messages. Those of weights go on while a slower rank sleeps, and are left out there."""
    messages = {name: value for name, value in terms.items() if name.startswith("messages")}
    counted = [value for name, value in messages.items() if slower == 1 or name.split(" ")[2] not in ("i", "ij", "ik")]
    meeting = terms.get("waiting at products", 0)
    return sum(terms.values()) - sum(messages.values()) - meeting, meeting, sum(counted)


KNOWN, WAITING, NOISE = 0.5, 0.05, 0.05  # of forecast/factor_filter: a factor, waiting, a step


def after_steps(before, own_parts, steps=18):
    """What the factors of a run say of another plan, as forecast/factor_filter does after so many steps alike: those of computing
    and of messages are known to a half, waiting to a twentieth of a step, a step to a twentieth."""
    seconds, own = before["seconds"], before["own"]
    computing, meeting, messages = (part / seconds for part in before["parts"])
    noise = NOISE ** 2 / steps
    rest = max(0, 1 - own / seconds - meeting) - messages
    spread = (KNOWN * messages) ** 2 + WAITING ** 2 + noise
    compute = 1 + KNOWN ** 2 * computing * (own / seconds - computing) / ((KNOWN * computing) ** 2 + noise)
    waiting = max(0, WAITING ** 2 * rest / spread)
    return (compute * (own_parts[0] + own_parts[1]) + (1 + KNOWN ** 2 * messages * rest / spread) * own_parts[2]) / (1 - waiting)


def fitted(rows):
    """Factors of computing and messages with the least squares of relative errors. Before any row they are 1, known to a half."""
    a = [((row["parts"][0] + row["parts"][1]) / row["measured"], row["parts"][2] / row["measured"]) for row in rows]
    before = (NOISE / KNOWN) ** 2
    cc, cm, mm = (sum(x[i] * x[j] for x in a) for i, j in ((0, 0), (0, 1), (1, 1)))
    cc, mm = cc + before, mm + before
    c, m = sum(x[0] for x in a) + before, sum(x[1] for x in a) + before
    det = cc * mm - cm * cm
    return (c * mm - m * cm) / det, (m * cc - c * cm) / det


def print_errors(title, rows):
    spread = f"{100 * statistics.mean(row['spread'] for row in rows):.1f} %"
    for kind, key in (("tables", "tables"), ("left out", "left out"), ("after 20", "after")):
        errors = sorted(abs(row[key] / row["measured"] - 1) for row in rows)
        print(f"| {title} | {len(rows)} | {spread} | {kind} | {100 * statistics.mean(errors):.1f} % "
              f"| {100 * errors[int(0.9 * (len(errors) - 1))]:.1f} % | {100 * errors[-1]:.1f} % |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True, type=pathlib.Path)
    parser.add_argument("--work", required=True, type=pathlib.Path)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--ranks", default="1,2")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--seconds", type=float, default=100, help="of each calibration")
    parser.add_argument("--run-seconds", type=float, default=0.8, help="of each run")
    args = parser.parse_args()
    args.program, args.work = args.program.resolve(), args.work.resolve()
    bench = Bench(args)
    rows = []
    for word in args.ranks.split(","):
        speed, _, every = word.partition("/")
        count, slower = (int(part) for part in (speed + "x1").split("x")[:2])
        combinations = [(name, shape, slower, size) for name, shape, size in itertools.product(args.models.split(","), SHAPES[count], SIZES)
                        if shape[0] * shape[1] <= size[0]]  # a sequence for each slab
        rows += [bench.row(*combination, "fp32") for combination in combinations[::int(every or 1)]]
    for row in rows:
        row["parts"] = parts(row["terms"], row["slower"])
        row["before"]["parts"] = parts(row["before"]["terms"], row["slower"])
    for row in rows:
        row["after"] = after_steps(row["before"], row["parts"])
        first, second = fitted([other for other in rows if (other["ranks"], other["slower"]) == (row["ranks"], row["slower"]) and
                                (other["name"], other["shape"]) != (row["name"], row["shape"])])
        row["left out"] = first * (row["parts"][0] + row["parts"][1]) + second * row["parts"][2]
    print("| model | replicas x (p q r) | sequences / micro-batch | measured ms | spread | tables | left out | after 20 |")
    print("|---|---|---|---:|---:|---:|---:|---:|")
    for row in rows:
        d, p, q, r = row["shape"]
        errors = " | ".join(f"{100 * (row[key] / row['measured'] - 1):+.1f} %" for key in ("tables", "left out", "after"))
        slower = f", {row['slower']} times slower" if row["slower"] > 1 else ""
        print(f"| {row['name']} | {d} x ({p} x {q} x {r}){slower} | {row['size'][0]} / {row['size'][1]} {row['size'][2]} "
              f"| {1e3 * row['measured']:.2f} | {100 * row['spread']:.1f} % | {errors} |")
    print("\n| ranks | combinations | spread of repeats | prediction | mean error | 90 % below | worst |\n|---|---:|---:|---|---:|---:|---:|")
    for count, slower in sorted({(row["ranks"], row["slower"]) for row in rows}):
        print_errors(f"{count}{f', {slower} times slower' if slower > 1 else ''}",
                     [row for row in rows if (row["ranks"], row["slower"]) == (count, slower)])
    print_errors("all", rows)


if __name__ == "__main__":
    main()
