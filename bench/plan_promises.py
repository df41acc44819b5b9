"""What `plan` promises is what `simulate` finds for the job that it wrote, on 20 clusters.

    python3 bench/plan_promises.py build/cpu/transformer3d [--clusters 20] [-o TABLE.md]

Clusters of one class and of two, of data sheets and with the same rates called measured, over four networks, with
nodes that are lost or not. For each: the deadline of 1.03 times the median life (what plan promises, what simulate
finds with other random numbers, and the interval of twice the standard errors of both), the step's seconds, and the
same for classes in the opposite order in the file, which numbers the ranks otherwise: within 0.1 %, since a few sums
over all ranks send a little more from some numbers than from others.
"""

import argparse
import json
import math
import pathlib
import re
import subprocess
import tempfile

INPUT = """version = 1
[run]
steps = 20000000
[model]
layers = 4
hidden = 512
heads = 8
vocab = 256
context = 256
[data]
train = "text.txt"
format = "bytes"
[batch]
sequences = 256
"""
CLASSES = [["h100"], ["a100-80g"], ["v100-32g"], ["l40s", "a100-40g"], ["h100", "v100-32g"]]
NETWORKS = ["ethernet-25g", "ib-edr", "ib-hdr", "ib-ndr"]
RUNS = 400


def clusters():
    """(classes, network, measured, hazard hours)"""
    for number in range(20):
        classes = CLASSES[number % 5]
        yield classes, NETWORKS[number // 5], number % 2 == 1, 0 if number % 3 == 0 else 40


class Bench:
    def __init__(self, program, folder):
        self.program, self.folder = str(pathlib.Path(program).resolve()), pathlib.Path(folder)
        (self.folder / "text.txt").write_text("the sea and the ship " * 4000)
        (self.folder / "input.toml").write_text(INPUT)

    def run(self, *words):
        done = subprocess.run([self.program, *words], cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{words}: {done.returncode}\n{done.stderr}")
        return done.stdout

    def make_cluster(self, classes, network, measured, hazard):
        (self.folder / "cluster.toml").unlink(missing_ok=True)
        self.run("calibrate", "--preset", ",".join([*classes, network]), "-o", "cluster.toml")
        text = (self.folder / "cluster.toml").read_text()
        # Of classes alone: nodes of a level are those that it connects.
        text = re.sub(r"(?ms)^(\[\[class\]\].*?^nodes = )1\b", r"\g<1>2", text)
        if measured:
            text = text.replace('"uncalibrated (data sheet)"', '"measured"')
        if hazard:
            text = re.sub(r"(?m)^hazard_scale_hours = .*", f"hazard_scale_hours = {hazard}", text)
            text = re.sub(r"(?m)^return_hours = .*", "return_hours = 0.1", text)
        (self.folder / "cluster.toml").write_text(text)

    def plan(self, *words):
        plan = json.loads(self.run("plan", "input.toml", "--cluster", "cluster.toml", "--json", *words))
        return plan["options"][plan["chosen"]]

    def turned_step(self, nodes):
        """The step's seconds with the classes in the opposite order in the file."""
        path = self.folder / "cluster.toml"
        text = path.read_text()
        begin, *blocks = re.split(r"(?m)^(?=\[\[class\]\])", text)
        last, rest = re.split(r"(?m)^(?=\[\[level\]\])", blocks[-1], maxsplit=1)
        path.write_text(begin + "".join(reversed([*blocks[:-1], last])) + rest)
        turned = self.plan("--nodes", str(nodes))
        path.write_text(text)
        return turned["step_seconds"]

    def row(self, number, cluster):
        self.make_cluster(*cluster)
        free = self.plan()
        deadline = f"{1.03 * free['hours'][1]:.4f}h"
        chosen = self.plan("--deadline", deadline, "--risk", "0.5", "--nodes", str(sum(free["nodes"].values())))
        self.run("plan", "input.toml", "--cluster", "cluster.toml", "--nodes", str(sum(chosen["nodes"].values())),
                 "--deadline", deadline, "--risk", "0.5", "-o", f"out{number}")
        found = json.loads(self.run("simulate", f"out{number}/job_plan.json", "--deadline", deadline, "--runs", str(RUNS),
                                    "--seed", str(100 + number), "--json"))["own"]["deadline_probability"]
        promised = chosen["in_time"]
        error = 2 * math.sqrt((promised * (1 - promised) + found * (1 - found)) / RUNS) + 0.005
        step = self.plan("--nodes", str(sum(chosen["nodes"].values())))["step_seconds"]
        turned = self.turned_step(sum(chosen["nodes"].values()))
        classes, network, measured, hazard = cluster
        kept = abs(promised - found) <= error and math.isclose(step, turned, rel_tol=1e-3)
        return kept, (f"| {number + 1} | {' + '.join(classes)} | {network} | {'measured' if measured else 'data sheet'} | "
                      f"{hazard or '-'} | {promised:.3f} | {found:.3f} | {error:.3f} | {step:.4g} | {turned:.4g} |")


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("program")
    options.add_argument("--clusters", type=int, default=20)
    options.add_argument("-o", "--output")
    wish = options.parse_args()
    lines = ["| # | classes | network | rates | lost after h | promised | found | +- | step s | turned s |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    kept = 0
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(wish.program, folder)
        for number, cluster in list(enumerate(clusters()))[: wish.clusters]:
            good, line = bench.row(number, cluster)
            kept += good
            print(line + ("" if good else " <- differs"), flush=True)
            lines.append(line)
    print(f"{kept} of {wish.clusters} keep what was promised")
    if wish.output:
        pathlib.Path(wish.output).write_text("\n".join(lines) + "\n")
    return 0 if kept == wish.clusters else 1


if __name__ == "__main__":
    raise SystemExit(main())
