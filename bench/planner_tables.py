"""Tables of published step times: reading them, and what a step of each row costs. Needs numpy only.

A step of a Megatron-style trainer, 1F1B schedule, per GPU:

    tokens = micro_batch seq;  n = global_batch / (dp micro_batch) micro-batches;  S = pp stages
    slots  = n + (S - 1) / interleave
    step   = slots (the slowest stage's costs) + data-parallel costs

A stage's costs are those of the GPU and those of the host, which launches its kernels; see Machine.

The costs are counted here by formula; the seconds of one unit are fitted (planner_score.py).
"""
import csv
import math

import numpy as np

COSTS = ("flops", "softmax_bytes", "elementwise_bytes", "tensor_node_bytes", "tensor_network_bytes", "layers",
         "hop_bytes", "gradient_bytes")
# Bytes that pass through memory per element of the attention matrix and per element of [tokens x hidden], in half
# precision, counted kernel by kernel: forward, backward. OUTSIDE and INSIDE the part that tensor parallelism cuts.
SOFTMAX, OUTSIDE, INSIDE = (13, 19), (22, 40), (16, 24)
MOST = 10**9
MEMORY = ("param_optimizer_gib", "activation_gib", "activation_pct_of_none")
NEEDED = ("layers", "hidden", "heads", "seq", "tp", "dp", "pp", "micro_batch", "global_batch")


class Machine:
    """What is expected of a kind of table before any fit: rates of the data sheets, and how a run is made.

    spread: relative standard deviation of the fitted coefficients around the expected ones.
    power: GPU and host together take (GPU^power + host^power)^(1/power); 1: one after the other, large: side by side.
    threshold: relative error from which on a fit counts absolute values instead of squares.
    without: costs that are left away, to see what they are worth.
    """

    def __init__(self, name, node, flops, memory, in_node, network, recompute, vocab=50257, spread=0.35, power=1):
        self.name, self.node, self.recompute, self.vocab = name, node, recompute, vocab
        self.spread, self.power, self.threshold, self.without = spread, power, 0.05, ()
        # No machine is faster than its data sheet: 3/4 of the peak, 4/5 of the memory's rate are expected.
        self.least = dict(flops=0.75 / flops, softmax_bytes=0.8 / memory, elementwise_bytes=0.8 / memory)
        host = 1.5e-3  # seconds to launch the kernels of one block, forward and backward
        self.prior = dict(flops=1 / flops, softmax_bytes=1 / memory, elementwise_bytes=1 / memory,
                          tensor_node_bytes=1 / in_node, tensor_network_bytes=1 / network, layers=host,
                          hop_bytes=node / network, gradient_bytes=1 / network)


# flop/s: 3/4 of the half-precision peak; memory, bytes/s: 4/5 of the data sheet; bytes/s per GPU in a node; bytes/s
# between nodes, per node. Of Sailor's clusters little is known: there the measurements decide (spread 2).
MACHINES = {
    "vtrain_multi_node": Machine("A100", 8, 234e12, 1.25e12, 150e9, 100e9, "full"),
    "vtrain_single_node": Machine("A100", 8, 234e12, 1.25e12, 150e9, 100e9, "full", power=2),
    "selene": Machine("A100", 8, 234e12, 1.6e12, 240e9, 200e9, "full", 51200),
    "sailor": Machine("GH200", 4, 740e12, 3.2e12, 150e9, 100e9, "none", spread=2),
    "sailor_mixed": Machine("mixed", 8, 45e12, 0.5e12, 6e9, 1.2e9, "none", spread=2),
}


def kind_of(columns):
    """The kind of a table, by its columns; None if no kind has them."""
    have = set(columns)
    if not have >= set(NEEDED):
        return None
    if "stage_devices" in have:
        return "sailor_mixed"
    if "stage_layers" in have:
        return "sailor"
    if have & {"sequence_parallel", "recompute", "interleave"}:
        return "selene"
    return "vtrain_multi_node" if "params_billion" in have else "vtrain_single_node"


class Row:
    """One row: its cells as text, its numbers by name, the line of its file."""

    def __init__(self, cells, line, kind):
        self.cells, self.line, self.kind, self.notes = cells, line, kind, []
        for name in NEEDED:
            number = self.number(name)
            if number is None:
                raise ValueError(f"{name} is missing")
            if number != int(number) or not 1 <= number <= MOST:
                raise ValueError(f"{name} is {cells[name].strip()}, must be a whole number from 1 to {MOST}")
            setattr(self, name, int(number))
        self.step = self.number("step_s")
        if self.step is not None and not 1e-9 <= self.step <= MOST:
            raise ValueError(f"step_s is {cells['step_s'].strip()}, must be seconds from 1e-9 to {MOST}")
        self.gpus = self.tp * self.dp * self.pp
        if self.number("gpus") not in (None, self.gpus):
            self.notes.append(f"gpus is {cells['gpus'].strip()}, tp x dp x pp is {self.gpus}: counted with the latter")
        self.vocab = self.positive("vocab", MACHINES[kind].vocab)
        self.ffn = self.positive("ffn_hidden", 4 * self.hidden)
        self.interleave = self.positive("interleave", 1)
        self.recompute = (cells.get("recompute") or "").strip() or MACHINES[kind].recompute
        if self.recompute not in ("none", "selective", "full"):
            raise ValueError(f"recompute is {self.recompute}, must be none, selective or full")
        self.sequence_parallel = bool(self.number("sequence_parallel"))
        self.stage_layers = self.stages()
        self.memory = {name: self.number(name) for name in MEMORY}

    def number(self, name):
        text = (self.cells.get(name) or "").strip()
        if not text:
            return None
        try:
            value = float(text)
        except ValueError:
            raise ValueError(f"{name} is {text!r}, not a number") from None
        if not math.isfinite(value):
            raise ValueError(f"{name} is {text}, must be finite")
        return value

    def positive(self, name, otherwise):
        """A cell that may be missing."""
        value = self.number(name)
        if value is not None and not 1 <= value <= MOST:
            raise ValueError(f"{name} is {self.cells[name].strip()}, must be from 1 to {MOST}")
        return otherwise if value is None else value

    def stages(self):
        """Blocks of every stage; listed units count embedding and head as one each."""
        text = (self.cells.get("stage_layers") or "").strip()
        if not text:
            return [self.layers / self.pp] * self.pp
        try:
            units = [int(part) for part in text.split("|")]
        except ValueError:
            raise ValueError(f"stage_layers is {text!r}, must be whole numbers separated by |") from None
        units[0] -= 1
        units[-1] -= 1
        if len(units) != self.pp or min(units) < 0:
            raise ValueError(f"stage_layers {text} does not fit pp = {self.pp}")
        if sum(units) == self.layers:
            return units
        self.notes.append(f"stage_layers {text} has {sum(units)} blocks, the model {self.layers}: shared out alike")
        return [self.layers * (part / sum(units) if sum(units) else 1 / self.pp) for part in units]

    @property
    def micro_batches(self):
        return max(1, math.ceil(self.global_batch / (self.dp * self.micro_batch)))

    @property
    def model(self):
        named = (self.cells.get("model") or "").strip()
        size = (self.cells.get("params_billion") or "").strip()
        try:
            size = f"{float(size):g}B" if size else ""
        except ValueError:
            pass  # a name as good as any
        return named or size or f"{self.layers} x {self.hidden}, {self.heads} heads, {self.seq}"

    @property
    def shape(self):
        return self.tp, self.dp, self.pp

    @property
    def mark(self):
        """What makes two rows the same measurement."""
        return "/".join(str(v) for v in (self.model, *self.shape, self.micro_batch, self.global_batch, self.recompute,
                                         int(self.sequence_parallel), self.step))


def block_costs(row):
    """Costs of one block and micro-batch, forward and backward, on one GPU."""
    tokens, hidden, tp = row.micro_batch * row.seq, row.hidden, row.tp
    forwards = 4 if row.recompute == "full" else 3
    attention = 3 if row.recompute == "none" else 4
    passes = 2 if row.recompute == "full" else 1  # forward, without attention
    matrix = row.micro_batch * row.heads * row.seq**2
    outside = (OUTSIDE[0] * passes + OUTSIDE[1]) / (tp if row.sequence_parallel else 1)
    inside = (INSIDE[0] * passes + INSIDE[1]) / tp
    reduced = 2 * tokens * hidden * 2 * (tp - 1) / tp * (2 * passes + 2)
    in_node = tp <= MACHINES[row.kind].node
    products = forwards * tokens * hidden * (8 * hidden + 4 * row.ffn)
    return dict(
        flops=(products + attention * 4 * tokens * row.seq * hidden) / tp,
        softmax_bytes=matrix / tp * (SOFTMAX[0] * (attention - 2) + SOFTMAX[1]),
        elementwise_bytes=tokens * hidden * (outside + inside),
        tensor_node_bytes=reduced if in_node else 0,
        tensor_network_bytes=0 if in_node else reduced,
        layers=1)


def costs(row):
    """Costs of one step, by name, as in COSTS."""
    machine = MACHINES[row.kind]
    tokens, tp, node = row.micro_batch * row.seq, row.tp, machine.node
    block = block_costs(row)
    head = 6 * tokens * row.hidden * row.vocab / tp
    stages = row.stage_layers
    work = [layers * block["flops"] + (head if i + 1 == len(stages) else 0) for i, layers in enumerate(stages)]
    slots = row.micro_batches + (row.pp - 1) / row.interleave
    most = max(stages)
    out = {name: slots * most * value for name, value in block.items()}
    out["flops"] = slots * max(work)
    hops = row.interleave if row.pp > 1 else 0
    out["hop_bytes"] = slots * hops * 2 * tokens * row.hidden * 2 / tp
    # Rings of the data-parallel groups cross a node's border once each.
    inside = min(row.dp, max(1, node // tp))
    nodes = row.dp / inside
    parameters = most * row.hidden * (4 * row.hidden + 2 * row.ffn) + row.vocab * row.hidden
    out["gradient_bytes"] = 2 * parameters / tp * min(tp, node) * 2 * (nodes - 1) / nodes
    return {name: 0 if name in machine.without else value for name, value in out.items()}


def design(rows):
    """[rows, COSTS]; no rows: no rows."""
    return np.array([[costs(row)[name] for name in COSTS] for row in rows], float).reshape(len(rows), len(COSTS))


def read_table(path):
    """(kind, rows, faults, notes), both texts with FILE:LINE: what is broken and left out, what was doubtful and used.

    Raises ValueError if it is no table of step times.
    """
    with open(path, newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file)
        columns = [name.strip() for name in next(reader, [])]
        kind = kind_of(columns)
        if kind is None:
            missing = ", ".join(name for name in NEEDED if name not in columns)
            raise ValueError(f"{path}:1: no table of step times: no column {missing}")
        rows, faults, notes = [], [], []
        for cells in reader:
            line = reader.line_num
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) > len(columns):
                faults.append(f"{path}:{line}: {len(cells)} cells, the first line names {len(columns)}")
                continue
            try:
                rows.append(Row(dict(zip(columns, cells)), line, kind))
                notes += [f"{path}:{line}: {note}" for note in rows[-1].notes]
            except ValueError as fault:
                faults.append(f"{path}:{line}: {fault}")
    return kind, rows, faults, notes


def memory_of(row):
    """Memory on the first stage by Megatron's closed forms: GiB per GPU; activations in % of no recomputation."""
    layers = row.layers * (1 + (row.pp - 1) / (row.pp * row.interleave))
    unit = row.seq * row.micro_batch * row.hidden * layers
    matrix = 5 * row.heads * row.seq / row.hidden

    def activations(recompute, sequence_parallel):
        if recompute == "full":
            return 2 * unit
        outside = 10 / (row.tp if sequence_parallel else 1)
        return unit * (outside + 24 / row.tp + (matrix / row.tp if recompute == "none" else 0))

    here = activations(row.recompute, row.sequence_parallel)
    return dict(zip(MEMORY, (18 * 12 * row.layers * row.hidden**2 / (row.tp * row.pp) / 2**30, here / 2**30,
                             100 * here / activations("none", False))))
