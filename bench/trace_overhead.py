"""What a step costs while debug.trace is on. Each run has three parts of N steps after a warm-up: the middle one is traced, or
nothing is (the control). Of each run: median seconds of a step of the middle part, over that of the two parts beside it; so what
differs between two runs, or drifts within one, is on both sides. A pair is one traced run and one control, in turn.

    python3 bench/trace_overhead.py PROGRAM [--ranks N] [--pairs N] [--steps N] [--set table.key=value ...]

Printed for wall time and for processor time of the ranks' threads without their waits (rank_milliseconds.cpu of log.jsonl; says
what tracing itself takes where other programs disturb the wall time): traced, control, and traced over control.
"""
import argparse
import json
import pathlib
import re
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
every = 1
[checkpoint]
every_minutes = 0
asynchronous = "off"
[debug]
threads = 1
"""
WARM_UP = 5


def middle_over_rest(seconds, first, last):
    """`seconds` by step; the middle part is steps first to last."""
    middle = [value for step, value in seconds.items() if first <= step <= last]
    rest = [value for step, value in seconds.items() if step > WARM_UP and not first <= step <= last]
    return statistics.median(middle) / statistics.median(rest), statistics.median(rest)


def one_run(arguments, folder, name, traced):
    first, last = WARM_UP + arguments.steps + 1, WARM_UP + 2 * arguments.steps
    command = [arguments.program, "input.toml", "-r", "never", "-d", name, "--set", f"run.steps={WARM_UP + 3 * arguments.steps}"]
    if arguments.ranks > 1:
        command = ["mpirun", "-n", str(arguments.ranks), "--oversubscribe", *command]
    for word in arguments.set:
        command += ["--set", word]
    if traced:
        command += ["--set", f"debug.trace=[{first},{last}]"]
    done = subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
    log = [json.loads(line) for line in (folder / name / "log.jsonl").open()]
    wall = {record["step"]: record["seconds"] for record in log}
    # Those of a step are gathered in the next one.
    own = [record["rank_milliseconds"] for record in log if "rank_milliseconds" in record]
    processor = {times["measured_step"]: sum(times["cpu"]) / 1e3 for times in own}
    result = {"wall": middle_over_rest(wall, first, last), "processor": middle_over_rest(processor, first, last)}
    spans, collecting = 0, None
    if traced:
        trace = json.loads((folder / name / "trace.json").read_text())
        spans = sum(event["ph"] == "X" for event in trace["traceEvents"]) / arguments.steps / arguments.ranks
        collecting = re.search(r"trace of steps.*", done.stdout).group(0)
    return result, spans, collecting


def spread(name, values):
    return f"{name} {statistics.median(values):.4f} ({min(values):.4f} to {max(values):.4f})"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=lambda name: str(pathlib.Path(name).resolve()))
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--set", action="append", default=[])
    arguments = parser.parse_args()
    ratios = {clock: {True: [], False: []} for clock in ("wall", "processor")}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "input.toml").write_text(INPUT)
        (folder / "text.txt").write_text("the old king sings by the river and walks the stone road\n" * 2000)
        for pair in range(arguments.pairs):
            words = []
            for traced in (False, True) if pair % 2 == 0 else (True, False):
                result, spans, collecting = one_run(arguments, folder, f"{pair}-{traced}", traced)
                for clock, (ratio, _) in result.items():
                    ratios[clock][traced].append(ratio)
                words.append(("traced" if traced else "control") + "".join(
                    f", {clock} {ratio:.4f} of {1e3 * rest:.1f} ms" for clock, (ratio, rest) in result.items()))
                if traced:
                    words[-1] += f", {spans:.0f} spans a step and rank"
                    told = collecting
            print(f"pair {pair + 1}: " + "; ".join(words), flush=True)
    print(f"the last of them: {told}")
    for clock, by_kind in ratios.items():
        quotients = [on / off for on, off in zip(by_kind[True], by_kind[False], strict=True)]
        print(f"{clock}, medians of {arguments.pairs} pairs: " + ", ".join(
            [spread("traced", by_kind[True]), spread("control", by_kind[False]), spread("traced / control", quotients)]))


if __name__ == "__main__":
    main()
