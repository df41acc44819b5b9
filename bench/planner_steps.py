#!/usr/bin/env python3
"""What the planner of a running job predicts of each shape, beside the steps that this shape takes.

    bench/planner_steps.py PROGRAM [--ranks 2] [--models small,wide] [--steps 40] [--repeats 3]

For each model the program is started on its ranks with every shape open: `-v` lists what the planner predicts of
each one. Then each shape is trained by itself; measured is the median of the repeats' medians (the first ten steps are
left out). Prints one row for each shape, and the mean and the largest difference. Nothing else may run on the machine.
"""
import argparse
import json
import pathlib
import re
import statistics
import subprocess
import tempfile

MPI_HERE = pathlib.Path(__file__).resolve().parents[1] / "jobs/mpi_here.sh"
MODELS = {  # one that computes little beside its messages, one with large products
    "small": ["model.layers=2", "model.hidden=128", "model.heads=4", "model.context=128", "batch.sequences=16"],
    "wide": ["model.layers=4", "model.hidden=384", "model.heads=6", "model.context=256", "batch.sequences=8"],
}
SHAPE = re.compile(r"plan: (?:(\d+) x \()?(\d+) x (\d+) x (\d+)\)? \(\+.*?\): ([0-9.]+) (ms|s): ")
INPUT = """version = 1
[run]
steps = {steps}
[data]
train = "text"
format = "bytes"
[balance]
kind = "off"
[schedule]
warmup_steps = 5
"""


def run(program, ranks, folder, name, words):
    command = ["bash", "-c", f'source "{MPI_HERE}"; exec mpirun "$@"', "mpirun", "-n", str(ranks), program, "input.toml"]
    command += ["-v", "-d", name]
    for word in words:
        command += ["--set", word]
    done = subprocess.run(command, cwd=folder, text=True, capture_output=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def median_step(folder, name):
    lines = [json.loads(line) for line in (folder / name / "log.jsonl").read_text().splitlines()]
    return statistics.median(line["seconds"] for line in lines if "seconds" in line and line["step"] > 10)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--models", default="small,wide")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--repeats", type=int, default=3)
    wish = parser.parse_args()
    program = str(pathlib.Path(wish.program).resolve())
    off = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "text").write_bytes(bytes(range(32, 127)) * 4000)
        (folder / "input.toml").write_text(INPUT.format(steps=wish.steps))
        print(f"{'model':<6} {'shape':<18} {'predicted ms':>12} {'measured ms':>12} {'difference':>11}")
        for model in wish.models.split(","):
            said = run(program, wish.ranks, folder, f"{model}-open", MODELS[model] + ["mesh.cuboid=auto", "mesh.replicas=auto"])
            for at, (replicas, p, q, r, number, unit) in enumerate(SHAPE.findall(said)):
                shape = [int(replicas or 1), int(p), int(q), int(r)]
                if shape[0] * shape[1] * shape[2] * shape[3] != wish.ranks:
                    continue
                words = MODELS[model] + [f"mesh.replicas={shape[0]}", f"mesh.cuboid=[{p},{q},{r}]"]
                runs = []
                for repeat in range(wish.repeats):
                    run(program, wish.ranks, folder, f"{model}-{at}-{repeat}", words)
                    runs.append(median_step(folder, f"{model}-{at}-{repeat}"))
                predicted = float(number) * (1 if unit == "ms" else 1e3)
                measured = 1e3 * statistics.median(runs)
                off.append(predicted / measured - 1)
                print(f"{model:<6} {shape[0]} x ({p} x {q} x {r}){'':<4} {predicted:12.2f} {measured:12.2f} {100 * off[-1]:+10.1f} %")
    print(f"{len(off)} shapes: mean difference {100 * statistics.mean(map(abs, off)):.1f} %, largest {100 * max(map(abs, off)):.1f} %")


main()
