"""OUR RECONSTRUCTION of Srift's structure (Luo and others, arXiv 2011.14243), on step times. Needs numpy only.

Srift measures a few steps per machine and batch size, interpolates them, and learns communication with boosted trees
from a sweep. The published tables hold whole steps only, so here: seconds per flop, interpolated over the size of a
micro-batch's product through the fastest known rows, make the compute part; boosted trees learn the ratio of the step
to it. Their code and data were not used.
"""
import numpy as np

import planner_tables as tables
from regressors import boosted


def features(row):
    costs = tables.costs(row)
    flops = costs["flops"]
    return [row.tp, row.dp, row.pp, row.micro_batch, row.micro_batches, row.hidden,
            costs["tensor_node_bytes"] / flops, costs["tensor_network_bytes"] / flops, costs["hop_bytes"] / flops,
            costs["gradient_bytes"] / flops]


def size_of(row):
    return np.log(row.micro_batch * row.seq * row.hidden / row.tp)


class Srift:
    def __init__(self, rows):
        fastest = {}
        for row in rows:
            rate = row.step / tables.costs(row)["flops"]
            key = round(size_of(row), 6)
            fastest[key] = min(rate, fastest.get(key, rate))
        self.sizes = np.array(sorted(fastest))
        # More work per product never takes longer per flop: the least up to each size.
        self.rates = np.minimum.accumulate([fastest[size] for size in self.sizes])
        ratio = np.log([row.step / self.compute(row) for row in rows])
        self.ratio = boosted(np.array([features(row) for row in rows]), ratio)

    def compute(self, row):
        return np.interp(size_of(row), self.sizes, self.rates) * tables.costs(row)["flops"]

    def predict(self, rows):
        ratio = np.exp(self.ratio(np.array([features(row) for row in rows])))
        return np.array([self.compute(row) for row in rows]) * ratio


def left_out(rows, keys):
    predicted = np.zeros(len(rows))
    for key in dict.fromkeys(keys):
        rest = [row for row, k in zip(rows, keys) if k != key]
        out = [i for i, k in enumerate(keys) if k == key]
        predicted[out] = Srift(rest).predict([rows[i] for i in out])
    return predicted
