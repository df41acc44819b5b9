"""A run folder as a long training of many ranks leaves it, made up: for the size, speed and looks of reports.

    synthetic_run.py FOLDER [STEPS [RANKS]]

Two replicas; times of ranks have 1.5 % of noise, parts of them more; the balancer moves work away from ranks that become slower.
"""
import json
import math
import pathlib
import random
import sys


def digits(value):
    return float(f"{value:.4g}")


def record(step, steps, ranks, slabs, draw):
    noise = lambda part: draw.gauss(1, part)
    speed = [1 / (1 + 0.6 * (rank % 16 == 5)) for rank in range(ranks)]
    matmul, attention, other, own, cpu = [], [], [], [], []
    for rank in range(ranks):
        load = slabs[rank * len(slabs) // ranks] / 16 / (speed[rank] if step < steps // 3 else 1)
        shared = noise(0.015)
        parts = [load * shared * 310, load * noise(0.02) * 42, noise(0.03) * 11.5]
        matmul.append(digits(parts[0]))
        attention.append(digits(parts[1]))
        other.append(digits(parts[2]))
        own.append(digits(sum(parts)))
        cpu.append(digits(sum(parts) * (0.995 + 0.002 * draw.random())))
    seconds = max(own) / 1000 * noise(0.01) + 0.05
    loss = 3 + 7 * math.exp(-step / (0.1 * steps)) + draw.gauss(0, 0.03)
    tokens = 524288.0
    log = {"step": step, "steps": steps, "loss": loss}
    if step % 250 == 0:
        log["valid_loss"] = loss + 0.05
    log.update({
        "grad_norm": abs(noise(0.2)) + 3 * math.exp(-step / (0.05 * steps)), "lr": 6e-4 * min(1, step / 500) * 0.5 * (1 + math.cos(math.pi * step / steps)),
        "seconds": seconds, "tokens": tokens, "tokens_per_second": tokens / seconds, "mfu": 0.43 / seconds * 0.4,
        "imbalance": max(own) / (sum(own) / ranks) - 1, "comm_fraction": 0.15 * noise(0.05),
        "rank_milliseconds": {"own": own, "cpu": cpu, "matmul": matmul, "attention": attention, "other": other,
                              "measured_step": step - 1, "measured_slabs": slabs},
        "slab_sequences": slabs, "adasum_gain": 1.2 + 0.1 * draw.random(), "noise_scale_sequences": 40 + step / 50 * noise(0.1), "left_out": [],
        "phase_seconds": {name: share * seconds * noise(0.03) for name, share in (
            ("activation", 0.02), ("aggregate", 0.06), ("attention", 0.1), ("embedding", 0.01), ("gather input", 0.04),
            ("gather weights", 0.07), ("head", 0.06), ("matmul", 0.5), ("norm", 0.02), ("optimizer", 0.01), ("read", 0.001),
            ("reduce gradients", 0.03), ("reduce output", 0.05), ("report", 0.002))},
        "bytes_by_axis": {"d": 875520000, "i": 39936000, "j": 3932160000, "k": 9216000, "world": 2448},
        "memory_bytes": 7370944000})
    return json.dumps(log, separators=(",", ":"))


def main():
    folder = pathlib.Path(sys.argv[1])
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 10000
    ranks = int(sys.argv[3]) if len(sys.argv) > 3 else 64
    folder.mkdir(parents=True, exist_ok=True)
    draw, slabs = random.Random(7), [16] * 16
    with open(folder / "log.jsonl", "w") as log, open(folder / "run.log", "w") as text:
        text.write("---- 2026-01-05 08:00:00 start at step 0\n")
        for step in range(1, steps + 1):
            if step % 500 == 0:
                slabs = slabs[:]
                slabs[step // 500 % 16] -= 1
                slabs[(step // 500 + 7) % 16] += 1
                text.write(f"plan {step:016x}: sequences by slab moved; slowest is replica 1\n")
            if step % 1000 == 0:
                text.write(f"checkpoint {folder}/ckpt/step-{step:08d} in 2.10 s beside the steps\n")
            if step % 10 == 0:
                text.write(f"step {step}/{steps}  loss 3.0\n")
            log.write(record(step, steps, ranks, slabs, draw) + "\n")
    life = {"life": 1, "job": None, "restart": 0, "nodes": ranks, "ranks": ranks, "started": 1767600000.0, "why": "new run", "lineage": 0,
            "from_step": 0, "checkpoint": None, "first_step_seconds": 9.5, "ended": 1767605000.0, "code": 0, "reason": "all steps done",
            "step": steps, "saved_step": steps, "lost_steps": None}
    (folder / "lives.jsonl").write_text(json.dumps(life) + "\n")
    (folder / "exit.json").write_text(json.dumps({"code": 0, "reason": "all steps done", "step": steps, "checkpoint": steps,
                                                  "continue": False, "requeues": False}) + "\n")


if __name__ == "__main__":
    main()
