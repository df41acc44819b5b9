#!/usr/bin/env python3
"""Bytes per transformer block on 64 ranks, M = 8192 tokens, C = 4096: 3-D cuboids beside 1-D and 2-D.

    bench/bytes_table.py [build/cpu/transformer3d]

Our figures are counted: the dry run of a model with 4 blocks minus that with 2, halved, divided by the
ranks (fp32). 2-D (SUMMA, which this program does not offer) is modelled: 3 (sqrt(P)-1)/P (7 M C + 12 C^2) elements
(tensor-parallel literature's count for stationary outputs without a broadcast factor).
"""
import re
import subprocess
import sys
import tempfile

BINARY = sys.argv[1] if len(sys.argv) > 1 else "build/cpu/transformer3d"
P, M, C, CONTEXT = 64, 8192, 4096, 1024
INPUT = f"""version = 1
[run]
steps = 1
[model]
layers = 2
hidden = {C}
heads = 64
context = {CONTEXT}
vocab = 256
[data]
train = "none"
[batch]
sequences = {M // CONTEXT}
[mesh]
keep = "all"
"""


def total(path, cuboid, layers):
    command = [BINARY, path, "--dry-run", str(P), "--set", f"mesh.cuboid={list(cuboid)}", "--set",
               f"model.layers={layers}"]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return int(re.search(r"total +(\d+) bytes", out).group(1))


def main():
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(INPUT)
        file.flush()
        per_block = {}
        for cuboid in [(4, 4, 4), (1, 64, 1), (8, 8, 1), (64, 1, 1), (4, 8, 2)]:
            per_block[cuboid] = (total(file.name, cuboid, 4) - total(file.name, cuboid, 2)) / 2 / P
    unit = 4 * M * C  # bytes of one activation [M x C]
    summa = 3 * (P**0.5 - 1) / P * (7 * M * C + 12 * C * C) * 4
    one, three = per_block[(1, 64, 1)], per_block[(4, 4, 4)]
    print("| scheme, 64 ranks | bytes per rank and block | in units of M C |\n|---|---:|---:|")
    for cuboid, value in per_block.items():
        print(f"| cuboid {' x '.join(map(str, cuboid))} | {value:,.0f} | {value / unit:.2f} |")
    print(f"| 2-D SUMMA 8 x 8 (modelled) | {summa:,.0f} | {summa / unit:.2f} |")
    print(f"\n3-D / 1-D = {three / one:.3f}   3-D / 2-D = {three / summa:.3f}")


if __name__ == "__main__":
    main()
