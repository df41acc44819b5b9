"""What benches that start the program share: its launcher, the program in a working folder, an input for it, and cluster files of
ranks that [emulate] makes slower."""
import json
import subprocess

# Of every input: no balancing, no checkpoint before the end, one thread.
QUIET = """[data]
train = "text.bin"
format = "bytes"
[balance]
kind = "off"
[checkpoint]
every_minutes = 0
[debug]
threads = 1
"""


def launcher(ranks):
    return ["mpirun", "-n", str(ranks), "--oversubscribe"] if ranks > 1 else []


class Program:
    def __init__(self, path, work):
        self.path, self.work = path.resolve(), work.resolve()
        self.work.mkdir(parents=True, exist_ok=True)
        (self.work / "text.bin").write_bytes(bytes(i * 7919 % 251 for i in range(1 << 20)))

    def __call__(self, *command, ranks=1):
        done = subprocess.run(launcher(ranks) + [self.path, *map(str, command)], cwd=self.work, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise SystemExit(f"{command}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout


def text(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, list):
        return "[" + ", ".join(map(text, value)) + "]"
    return repr(value)


def write_cluster(cluster, path):
    lines = []
    for key, value in cluster.items():
        if not isinstance(value, (dict, list)):
            lines.append(f"{key} = {text(value)}")
    for key, value in cluster.items():
        for table in value if isinstance(value, list) else [value] if isinstance(value, dict) else []:
            lines.append(f"[[{key}]]" if isinstance(value, list) else f"[{key}]")
            lines += [f"{name} = {text(entry)}" for name, entry in table.items()]
    path.write_text("\n".join(lines) + "\n")


def times(table, factor):
    """A table of operators or of a collective whose seconds are `factor` times as many."""
    more = dict(table)
    for key in ("terms", "term_errors"):
        if key in table:
            more[key] = [factor * x for x in table[key]]
    more["samples"] = [row[:-2] + [factor * row[-2], factor * row[-1]] for row in table["samples"]]
    return more


def slowed_cluster(measured, together, slowdown, ranks_per_node=1, messages=1):
    """A cluster file of classes x1, x8, ...: one for each factor in `slowdown`, which has an entry for each rank. Operators are those of
    the cluster file `measured` (one rank) times the factor, collectives those of `together` (as many ranks as there are) times
    `messages`."""
    cluster = {key: value for key, value in measured.items() if key not in ("class", "operator", "level", "collective")}
    one, level = measured["class"][0], dict(together["level"][0], **{"class": "", "nodes": 0})
    cluster["class"], cluster["operator"] = [], []
    for factor in sorted(set(slowdown)):
        name = f"x{factor}"
        nodes = slowdown.count(factor) // ranks_per_node
        cluster["class"].append(dict(one, name=name, nodes=nodes, ranks_per_node=ranks_per_node, node_list=""))
        cluster["operator"] += [dict(times(table, factor), **{"class": name}) for table in measured["operator"]]
    for key in level:
        if key.startswith(("alpha_", "beta_")):
            level[key] *= messages
    cluster["level"] = [level]
    cluster["collective"] = [dict(times(table, messages), **{"class": ""}) for table in together.get("collective", [])]
    return cluster
