"""What debug.trace costs while it is on: pairs of runs, off and on in turn, every step of the second traced. Prints for each
pair the ratio of the median seconds of a step, and the median of the ratios.

    python3 bench/trace_overhead.py PROGRAM [--ranks N] [--pairs N] [--steps N] [--set table.key=value ...]
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

INPUT = """version = 1
[run]
name = "overhead"
[model]
layers = 4
hidden = 256
heads = 4
context = 128
vocab = 256
[data]
train = "text.txt"
format = "bytes"
[batch]
sequences = 16
[optimizer]
lr = 1e-3
[hetero]
speeds = "equal"
[balance]
kind = "off"
[checkpoint]
every_minutes = 0
asynchronous = "off"
"""
WARM_UP = 5


def step_seconds(arguments, folder, name, steps, traced):
    command = [arguments.program, "input.toml", "-q", "-r", "never", "-d", name, "--set", f"run.steps={steps}"]
    if arguments.ranks > 1:
        command = ["mpirun", "-n", str(arguments.ranks), "--oversubscribe", *command]
    for word in arguments.set:
        command += ["--set", word]
    if traced:
        command += ["--set", f"debug.trace=[{WARM_UP + 1},{steps}]"]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    log = [json.loads(line) for line in (folder / name / "log.jsonl").open()]
    return statistics.median(record["seconds"] for record in log[WARM_UP:])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=lambda name: str(pathlib.Path(name).resolve()))
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--set", action="append", default=[])
    arguments = parser.parse_args()
    ratios = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "input.toml").write_text(INPUT)
        (folder / "text.txt").write_text("the old king sings by the river and walks the stone road\n" * 2000)
        for pair in range(arguments.pairs):
            times = {}
            for traced in (False, True) if pair % 2 == 0 else (True, False):
                times[traced] = step_seconds(arguments, folder, f"{pair}-{traced}", arguments.steps, traced)
            ratios.append(times[True] / times[False])
            print(f"pair {pair + 1}: off {1e3 * times[False]:.3f} ms, on {1e3 * times[True]:.3f} ms, {ratios[-1]:.4f}",
                  flush=True)
    print(f"median of {len(ratios)} pairs: {statistics.median(ratios):.4f}, from {min(ratios):.4f} to {max(ratios):.4f}")


if __name__ == "__main__":
    main()
