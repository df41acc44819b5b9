#!/usr/bin/env python3
"""What balancing gains where ranks are unequal, in real MPI runs on one machine.

    bench/unequal_ranks.py PROGRAM SCENARIO [--pairs 5] [--steps 60] [--at 150]

    dilation     emulated: 8 ranks, factors 4/8/16 on 3/3/2 of them, as 8 replicas
    widths       the same ranks inside one 2 x 2 x 2 cuboid
    free         the same ranks, shape and places chosen by the planner
    halved       emulated: 4 replicas, one rank half as fast from step --at on, both balance.kind
    contention   real: 2 ranks, one core each, cuboid 2 x 1 x 1, a busy loop beside rank 1
    quota        real: the same, with rank 1 in a control group of half a core, period 10 ms

Each pair is one run with balancing and one without (A B A B). A run's figure is the median of its
last third of steps. "fluid" is the gain that parts of any size would allow. Needs root for quota.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FACTORS = [4, 4, 4, 8, 8, 8, 16, 16]
INPUT = """version = 1
[model]
layers = 4
hidden = 256
heads = 8
context = 128
[data]
train = "{root}/src/*/*.cpp"
format = "bytes"
[checkpoint]
every_minutes = 0
"""


def environment():
    script = f"source {ROOT}/jobs/mpi_here.sh; env -0"
    out = subprocess.run(["bash", "-c", script], check=True, capture_output=True).stdout
    pairs = (entry.split("=", 1) for entry in out.decode().split("\0") if "=" in entry)
    return dict(pairs) | {"OMP_NUM_THREADS": "1"}


class Bench:
    def __init__(self, program, steps):
        self.program, self.steps = os.path.realpath(program), steps
        self.env = environment()
        self.work = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.work.name)
        (self.folder / "input.toml").write_text(INPUT.format(root=ROOT))

    def run(self, ranks, settings, launcher=None, steps=None):
        """Wall seconds of the steps, and the run folder."""
        folder = self.folder / "run"
        subprocess.run(["rm", "-rf", folder], check=True)
        command = (launcher or ["mpirun", "-n", str(ranks)]) + [self.program, "input.toml", "-d", "run"]
        for key, value in ({"run.steps": steps or self.steps} | settings).items():
            command += ["--set", f"{key}={json.dumps(value)}"]
        done = subprocess.run(command, cwd=self.folder, env=self.env, capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stdout + done.stderr)
        records = [json.loads(line) for line in open(folder / "log.jsonl")]
        return [record["seconds"] for record in records], folder

    def pairs(self, count, ranks, settings, even, launcher=None, fluid=None):
        """Runs with `settings` and with `even` beside them, in turns."""
        ratios = []
        for number in range(count):
            times = {}
            for kind in (("even", "balanced") if number % 2 else ("balanced", "even")):
                extra = even if kind == "even" else {}
                seconds, folder = self.run(ranks, settings | extra, launcher)
                times[kind] = statistics.median(seconds[-len(seconds) // 3:])
                if kind == "balanced":
                    notes = [line for line in open(folder / "run.log") if line.startswith("plan ")]
            ratios.append(times["even"] / times["balanced"])
            print(f"pair {number + 1}: even {1e3 * times['even']:.0f} ms, balanced "
                  f"{1e3 * times['balanced']:.0f} ms, gain {ratios[-1]:.2f}", flush=True)
        print("".join(notes), end="")
        text = f"median gain {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"
        print(text + (f", fluid {fluid:.2f}" if fluid else ""))


def fluid_gain(factors):
    return sum(1 / f for f in factors) / (len(factors) / max(factors))


def step_of_shares(shares, factors):
    """A step's length if only sequences cost: relative to those of one unslowed rank."""
    return max(share * factor for share, factor in zip(shares, factors))


def halved(bench, at, after=80):
    """Steps until the step is back within 5 % of the new optimum, for each kind."""
    # 56 = 4 x 14 before and 3 x 16 + 8 after: whole sequences reach the fluid optimum.
    # Ranks that mostly sleep: what else the machine does is part of their sleep.
    sequences, factors = 56, [12, 12, 12, 24]
    fluid = sequences / sum(1 / factor for factor in factors)
    settings = {"mesh.replicas": 4, "mesh.cuboid": [1, 1, 1], "batch.sequences": sequences,
                "model.layers": 2, "model.hidden": 128, "model.context": 64, "hetero.speeds": "equal",
                "emulate.slowdown": [factors[0]] * 4,
                "emulate.schedule": [f"{at + 1}:3:{factors[3]}"]}
    runs = {}
    for kind in ("model", "off"):
        seconds, folder = bench.run(4, settings | {"balance.kind": kind}, steps=at + after)
        shares = [json.loads(line)["slab_sequences"] for line in open(folder / "log.jsonl")]
        runs[kind] = seconds, shares
        print(f"{kind}: {1e3 * statistics.median(seconds[at // 2:at]):.0f} ms before, "
              f"{1e3 * statistics.median(seconds[-20:]):.0f} ms in the end", flush=True)
    best = min(statistics.median(seconds[-20:]) for seconds, _ in runs.values())
    print(f"rank 3 of 4 half as fast from step {at + 1} on; steps from there until the step is within 5 % of "
          f"the best ({1e3 * best:.0f} ms),\nand until the shares are within 5 % of the optimum")
    print("kind            in the end  of best    steps   shares  changes  last shares")
    for kind, (seconds, shares) in runs.items():
        settled = statistics.median(seconds[-20:])
        near = [second <= 1.05 * best for second in seconds]
        back = next((n - at for n in range(at, len(near) - 4) if near[n] and sum(near[n:n + 5]) >= 3), "never")
        fits = next((n - at for n in range(at, len(shares))
                     if step_of_shares(shares[n], factors) <= 1.05 * fluid), "never")
        changes = sum(a != b for a, b in zip(shares, shares[1:]))
        print(f"{kind:15} {1e3 * settled:7.0f} ms  {settled / best:7.3f}  {back:>7}  {fits:>7}  {changes:7}  "
              f"{shares[-1]}", flush=True)


def busy_loop(core):
    code = f"import os; os.sched_setaffinity(0, {{{core}}})\nwhile True: pass"
    return subprocess.Popen([sys.executable, "-c", code])


def quota_launcher(program_ranks):
    """mpirun whose rank 1 enters a control group of half a core."""
    group = pathlib.Path("/sys/fs/cgroup/cpu/t3d_unequal")
    if pathlib.Path("/sys/fs/cgroup/cgroup.controllers").exists():
        group = pathlib.Path("/sys/fs/cgroup/t3d_unequal")
    group.mkdir(exist_ok=True)
    if (group / "cpu.max").exists():
        (group / "cpu.max").write_text("5000 10000")
    else:
        (group / "cpu.cfs_period_us").write_text("10000")
        (group / "cpu.cfs_quota_us").write_text("5000")
    enter = f'[ "$OMPI_COMM_WORLD_RANK" != 1 ] || echo $$ > {group}/cgroup.procs; ' \
            'taskset -pc "$OMPI_COMM_WORLD_RANK" $$ > /dev/null; exec "$@"'
    return group, ["mpirun", "-n", str(program_ranks), "bash", "-c", enter, "rank"]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("scenario", choices=["dilation", "widths", "free", "halved", "contention", "quota"])
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--at", type=int, default=150, help="halved: steps before the change")
    options = parser.parse_args()
    bench = Bench(options.program, options.steps)
    model = next(line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name"))
    print(f"{model}, {os.cpu_count()} cores, {options.scenario}")
    even = {"balance.kind": "off", "hetero.speeds": "equal"}
    if options.scenario in ("dilation", "widths", "free"):
        shape = {"dilation": {"mesh.replicas": 8, "mesh.cuboid": [1, 1, 1]},
                 "widths": {"mesh.replicas": 1, "mesh.cuboid": [2, 2, 2]},
                 "free": {"mesh.replicas": "auto", "mesh.cuboid": "auto"}}[options.scenario]
        # On 8 ranks of 2 cores messages are copies that cost both: few weights and many sequences for
        # replicas, much computing per activation inside one cuboid.
        model = {"model.layers": 2, "model.hidden": 128, "model.heads": 8, "batch.sequences": 320}
        if options.scenario == "widths":
            model |= {"model.hidden": 1024, "model.context": 64, "batch.sequences": 16}
        settings = shape | model | {"emulate.slowdown": FACTORS, "hetero.probe_seconds": 8}
        if options.scenario == "free":
            even |= {"mesh.replicas": 8, "mesh.cuboid": [1, 1, 1]}
        bench.pairs(options.pairs, 8, settings, even, fluid=fluid_gain(FACTORS))
    elif options.scenario == "halved":
        halved(bench, options.at)
    else:
        bench.env["OMPI_MCA_mpi_yield_when_idle"] = "0"  # as where every rank has a core
        settings = {"mesh.replicas": 1, "mesh.cuboid": [2, 1, 1], "batch.sequences": 32}
        if options.scenario == "contention":
            pin = 'taskset -pc "$OMPI_COMM_WORLD_RANK" $$ > /dev/null; exec "$@"'
            loop = busy_loop(1)
            try:
                bench.pairs(options.pairs, 2, settings, even,
                            ["mpirun", "-n", "2", "bash", "-c", pin, "rank"], fluid=1.5)
            finally:
                loop.kill()
        else:
            group, launcher = quota_launcher(2)
            try:
                bench.pairs(options.pairs, 2, settings, even, launcher, fluid=1.5)
            finally:
                group.rmdir()


if __name__ == "__main__":
    main()
