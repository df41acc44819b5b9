"""The step time of one kind of table: from costs and coefficients, and fitted. Needs numpy only."""
import numpy as np

import planner_fit
import planner_tables as tables

HOST, APART = tables.COSTS.index("layers"), tables.COSTS.index("gradient_bytes")
GPU = [i for i in range(len(tables.COSTS)) if i not in (HOST, APART)]


class Formula:
    def __init__(self, kind):
        machine = tables.MACHINES[kind]
        self.expected = np.array([machine.prior[name] for name in tables.COSTS])
        self.least = np.array([machine.least.get(name, 0) for name in tables.COSTS])
        self.spread, self.power, self.threshold = machine.spread, machine.power, machine.threshold

    def weighted(self, design, coefficients):
        """The design whose product with the coefficients is the step: the norm of GPU and host, to first order."""
        if self.power == 1:
            return design
        gpu, host = design[:, GPU] @ coefficients[GPU], design[:, HOST] * coefficients[HOST]
        both = np.maximum((gpu**self.power + host**self.power)**(1 / self.power), 1e-300)
        out = design.copy()
        out[:, GPU] *= ((gpu / both)**(self.power - 1))[:, None]
        out[:, HOST] *= (host / both)**(self.power - 1)
        return out

    def predict(self, design, coefficients):
        return self.weighted(design, coefficients) @ coefficients

    def fit(self, design, seconds):
        found = self.expected
        for _ in range(40):
            weighted = self.weighted(design, found)
            step = planner_fit.fit(weighted, seconds, self.expected, self.spread, threshold=self.threshold,
                                   least=self.least)
            if self.power == 1 or (np.abs(step - found) / self.expected).max() < 1e-3:
                return step
            found = (found + step) / 2
        return found

    def left_out(self, design, seconds, keys):
        return planner_fit.left_out(design, seconds, keys, self.fit, self.predict)

    def standard_errors(self, design, seconds, keys):
        """The larger of what leaving groups out moves and what independent rows would leave open."""
        weighted = self.weighted(design, self.fit(design, seconds))
        return np.fmax(planner_fit.jackknife(design, seconds, keys, self.fit),
                       planner_fit.posterior(weighted, seconds, self.expected, self.spread))
