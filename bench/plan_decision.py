#!/usr/bin/env python3
"""A decision that pays: a planned run on three classes of ranks beside the equal split of the same ranks (emulated).

  bench/plan_decision.py --program P --work DIR [--others 20 10]

Eight ranks share this machine's cores. [emulate] makes all of them slower by sleeping, four 8 times, two 16, two 32 times, so that they do
not wait for cores. `calibrate --slowdown` measures these ranks, `plan` deals out the job, the run takes its plan.toml whole. Turns A B A B,
medians. With --others the best so many of all shapes, micro-batches and kinds of recompute that `plan` gives for these ranks when they are written, and so many drawn from the rest, take their turns too.
"""
import argparse
import itertools
import json
import pathlib
import random
import statistics
import subprocess
import tomllib

from plan_runs import QUIET, Program

SEQUENCES = 64
SLOWDOWN = [8, 8, 8, 8, 16, 16, 32, 32]
INPUT = """version = 1
[run]
steps = {steps}
[model]
layers = 3
hidden = 128
heads = 8
vocab = 2048
context = 128
[batch]
sequences = {sequences}
[aggregate]
reference_batch = {sequences}
"""


def other_plans(program, best, drawn):
    """Folders of plans for all ranks: the `best` by prediction, and `drawn` of the others. What `plan` refuses is left out."""
    ranks = len(SLOWDOWN)
    found = {}
    for replicas, p, q, r in itertools.product(range(1, ranks + 1), repeat=4):
        if replicas * p * q * r != ranks:
            continue
        for micro, recompute in itertools.product((1, 4, 16, 64), ("none", "block")):
            folder = f"other-{replicas}-{p}{q}{r}-{micro}-{recompute}"
            try:
                listed = program("plan", "input.toml", "--cluster", "cluster.toml", "--nodes", ranks, "--json", "-o", folder,
                                 "--set", f"mesh.replicas={replicas}", "--set", f"mesh.cuboid=[{p},{q},{r}]",
                                 "--set", f"batch.micro={micro}", "--set", f'batch.recompute="{recompute}"')
            except SystemExit:
                continue
            listed = json.loads(listed)
            plan = (program.work / folder / "plan.toml").read_text()
            found.setdefault(plan, (listed["options"][listed["chosen"]]["step_seconds"], folder))
    ordered = sorted(found.values())
    rest = random.Random(1).sample(ordered[best:], min(drawn, len(ordered) - best)) if len(ordered) > best else []
    print(f"{len(ordered)} plans of {ranks} ranks; {len(ordered[:best])} best and {len(rest)} drawn take turns")
    return ordered[:best] + rest


def settings_of(folder, program):
    """As `plan` has them; micro-batch and recompute are no part of plan.toml alone."""
    chosen = tomllib.loads((program.work / folder / "input.toml").read_text())["batch"]
    return ["--set", f'mesh.plan="{folder}/plan.toml"', "--set", f"batch.micro={chosen['micro']}",
            "--set", f'batch.recompute="{chosen["recompute"]}"']


def compare_others(others, seconds):
    middle = {kind: statistics.median(values) for kind, values in seconds.items()}
    print("\n| plan | predicted ms | measured ms | least | most |\n|---|---:|---:|---:|---:|")
    for predicted, folder in others:
        values = seconds[folder]
        print(f"| {folder} | {1e3 * predicted:.1f} | {1e3 * middle[folder]:.1f} | {1e3 * min(values):.1f} | {1e3 * max(values):.1f} |")
    best = min((folder for _, folder in others), key=middle.get)
    over = middle["planned"] / middle[best] - 1
    print(f"\nplanned is {100 * over:+.1f} % beside the best measured of {len(others)}, {best}: "
          f"{'within' if over <= 0.05 else 'not within'} 5 %")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True, type=pathlib.Path)
    parser.add_argument("--work", required=True, type=pathlib.Path)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=120, help="of the calibration")
    parser.add_argument("--others", type=int, nargs=2, metavar=("BEST", "DRAWN"), help="measure these too")
    args = parser.parse_args()
    args.program, args.work = args.program.resolve(), args.work.resolve()
    program = Program(args.program, args.work)
    (args.work / "input.toml").write_text(INPUT.format(steps=args.steps, sequences=SEQUENCES) + QUIET)
    subprocess.run(["rm", "-f", args.work / "cluster.toml"], check=True)
    program("calibrate", "-o", "cluster.toml", "--formats", "fp32", "--seconds", args.seconds, "--slowdown", ",".join(map(str, SLOWDOWN)),
            ranks=len(SLOWDOWN))
    print(program("plan", "input.toml", "--cluster", "cluster.toml", "--nodes", len(SLOWDOWN), "-o", "out"))

    def step(*options):
        subprocess.run(["rm", "-rf", args.work / "run"], check=True)
        program("input.toml", "-d", "run", "-q", "--set", f"emulate.slowdown={SLOWDOWN}", *options, ranks=len(SLOWDOWN))
        rows = [json.loads(line) for line in open(args.work / "run" / "log.jsonl")]
        return statistics.median(row["seconds"] for row in rows if row.get("step", 0) > 2 and "seconds" in row)

    kinds = {"equal split": ["--set", 'hetero.speeds="equal"'], "planned": ["--set", 'mesh.plan="out/plan.toml"']}
    others = other_plans(program, *args.others) if args.others else []
    kinds |= {folder: settings_of(folder, program) for _, folder in others}
    seconds = {kind: [] for kind in kinds}
    for _ in range(args.pairs):
        for kind, options in kinds.items():
            seconds[kind].append(step(*options))
    ratios = sorted(a / b for a, b in zip(seconds["equal split"], seconds["planned"]))
    for kind, values in seconds.items():
        if kind in ("equal split", "planned"):
            print(f"{kind}: {1e3 * statistics.median(values):.1f} ms a step ({1e3 * min(values):.1f} to {1e3 * max(values):.1f})")
    print(f"planned is {statistics.median(ratios):.2f} times as fast ({ratios[0]:.2f} to {ratios[-1]:.2f}; emulated, shared cores)")
    if others:
        compare_others(others, seconds)


if __name__ == "__main__":
    main()
