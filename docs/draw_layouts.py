#!/usr/bin/env python3
"""Draws docs/pictures/*.svg for 04-layouts.md and README.md. Standard library only: python3 docs/draw_layouts.py"""
import pathlib

OUT = pathlib.Path(__file__).parent / "pictures"
COLOURS = ["#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#edc948", "#b07aa1", "#9c755f"]


class Svg:
    def __init__(self, width, height):
        self.width, self.height, self.items = width, height, []

    def rect(self, x, y, w, h, fill="white", label="", stroke="#333", opacity=1.0):
        self.items.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" '
                          f'fill="{fill}" fill-opacity="{opacity}" stroke="{stroke}"/>')
        if label:
            self.text(x + w / 2, y + h / 2 + 4, label)

    def text(self, x, y, text, anchor="middle", size=12, weight="normal"):
        self.items.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" '
                          f'font-weight="{weight}">{text}</text>')

    def polygon(self, points, fill):
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.items.append(f'<polygon points="{joined}" fill="{fill}" stroke="#333"/>')

    def arrow(self, x1, y1, x2, y2):
        self.items.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#333" '
                          'stroke-width="1.5" marker-end="url(#head)"/>')

    def save(self, name):
        head = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.height}" '
                f'viewBox="0 0 {self.width} {self.height}" font-family="sans-serif">'
                '<defs><marker id="head" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
                '<path d="M0,0 L8,4 L0,8 z" fill="#333"/></marker></defs>'
                f'<rect width="{self.width}" height="{self.height}" fill="white"/>')
        (OUT / name).write_text(head + "\n".join(self.items) + "</svg>\n")


def offsets(weights, length):
    total, at, result = sum(weights), 0, [0.0]
    for weight in weights:
        at += weight
        result.append(length * at / total)
    return result


def cuboid():
    """2 x 3 x 2 ranks as boxes in space, one colour per slab i."""
    svg = Svg(520, 330)
    p, q, r, a = 2, 3, 2, 62
    for k in reversed(range(r)):
        for i in reversed(range(p)):
            for j in range(q):
                x, y = 110 + j * (a + 8) + k * 34, 60 + i * (a + 18) - k * 26 + 40
                d = 16
                svg.polygon([(x, y), (x + d, y - d), (x + a + d, y - d), (x + a, y)], "#eee")
                svg.polygon([(x + a, y), (x + a + d, y - d), (x + a + d, y + a - d), (x + a, y + a)], "#ddd")
                svg.rect(x, y, a, a, COLOURS[i], f"{i},{j},{k}" if k == 0 else "")
    svg.arrow(80, 95, 80, 250)
    svg.text(4, 80, "i: tokens (p = 2)", "start")
    svg.arrow(110, 290, 320, 290)
    svg.text(215, 310, "j: outputs, then contractions (q = 3)")
    svg.arrow(345, 265, 400, 222)
    svg.text(455, 250, "k: contractions,", size=12)
    svg.text(455, 266, "then outputs (r = 2)", size=12)
    svg.text(260, 24, "A cuboid of 2 x 3 x 2 ranks (i, j, k); one colour is one slab", weight="bold")
    svg.save("cuboid.svg")


def matrix(svg, x, y, w, h, rows, cols, sub, title, label, sub_by_columns=False):
    """One matrix cut by row and column weights; dashed sub-split of each block at rest."""
    svg.text(x + w / 2, y - 10, title, weight="bold")
    r, c = offsets(rows, h), offsets(cols, w)
    for a in range(len(rows)):
        for b in range(len(cols)):
            colour = COLOURS[(a * len(cols) + b) % len(COLOURS)]
            block = (x + c[b], y + r[a], c[b + 1] - c[b], r[a + 1] - r[a])
            svg.rect(*block, colour, opacity=0.55)
            for s in range(1, sub):
                if sub_by_columns:
                    at = block[0] + block[2] * s / sub
                    svg.items.append(f'<line x1="{at:.1f}" y1="{block[1]:.1f}" x2="{at:.1f}" y2="{block[1] + block[3]:.1f}" stroke="#333" stroke-dasharray="3,3"/>')
                else:
                    at = block[1] + block[3] * s / sub
                    svg.items.append(f'<line x1="{block[0]:.1f}" y1="{at:.1f}" x2="{block[0] + block[2]:.1f}" y2="{at:.1f}" stroke="#333" stroke-dasharray="3,3"/>')
            svg.text(block[0] + block[2] / 2, block[1] + block[3] / 2 + 4, label(a, b), size=11)


def linear(name, tokens, outputs, contractions, title):
    svg = Svg(760, 330)
    svg.text(380, 22, title, weight="bold", size=14)
    q, r, p = len(outputs), len(contractions), len(tokens)
    matrix(svg, 30, 80, 180, 200, tokens, contractions, q, "X [T x K | i,j | k]", lambda i, k: f"i={i} k={k}")
    matrix(svg, 290, 80, 150, 200, outputs, contractions, p, "W [N x K | j | k], shares over i", lambda j, k: f"j={j} k={k}")
    matrix(svg, 530, 80, 200, 200, tokens, outputs, r, "Y [T x N | i,k | j]", lambda i, j: f"i={i} j={j}")
    svg.text(120, 300, "dashed: at rest over j; gather over j")
    svg.text(365, 300, "dashed: at rest over i; gather over i")
    svg.text(630, 300, "sum over k, scattered over k")
    svg.text(250, 185, "x", size=20)
    svg.text(485, 185, "=", size=20)
    svg.save(name)


def block():
    """The swap of j and k from linear to linear through one transformer block."""
    svg = Svg(860, 250)
    svg.text(430, 24, "Through one block: j and k exchange roles at every matmul", weight="bold", size=14)
    stages = [("residual X", "T x H | i,j | k"), ("qkv", "T x 3H | i,(k) | j"), ("attention", "whole sequences"),
              ("projection", "T x H | i,j | k"), ("up, gate", "T x F | i,k | j"), ("down", "T x H | i,j | k")]
    messages = ["gather j, W over i, sum over k", "none", "gather k, W over i, sum over j",
                "gather j, W over i, sum over k", "gather k, W over i, sum over j"]
    for n, (title, layout) in enumerate(stages):
        x = 16 + n * 142
        svg.rect(x, 80, 116, 70, COLOURS[n % 2], opacity=0.35)
        svg.text(x + 58, 108, title, weight="bold")
        svg.text(x + 58, 130, layout, size=11)
        if n < len(messages):
            svg.arrow(x + 118, 115, x + 140, 115)
            for line, text in enumerate(messages[n].split(", ")):
                svg.text(x + 129, 180 + 15 * line, text, size=10)
    svg.text(430, 240, "the residual stream starts and ends in one layout, so the additions are local", size=12)
    svg.save("block.svg")


def head():
    svg = Svg(640, 270)
    svg.text(320, 22, "Output head: vocabulary over j and, within, over k", weight="bold", size=14)
    matrix(svg, 40, 70, 120, 160, [1, 1], [1, 1], 1, "W [V_j x H_k]", lambda j, k: f"j={j} k={k}")
    svg.arrow(180, 150, 260, 150)
    svg.text(220, 140, "exchange", size=11)
    svg.text(220, 168, "over k", size=11)
    matrix(svg, 280, 70, 120, 160, [1, 1, 1, 1], [1], 1, "W [V_jk x H]", lambda j, _: f"j={j // 2} k={j % 2}")
    matrix(svg, 460, 70, 150, 160, [1, 1], [1, 1, 1, 1], 1, "logits [T x V | i | j,k]", lambda i, j: f"{j // 2},{j % 2}")
    svg.text(535, 250, "never summed, never gathered", size=11)
    svg.save("head.svg")


def unequal_slices():
    """Three nodes of speeds 3 : 2 : 1: a matrix cut evenly and by speed, and how long each node computes and waits."""
    svg = Svg(760, 350)
    speeds, names = [3, 2, 1], ["node A, new", "node B, older", "node C, oldest"]
    at = 16
    for speed, name, colour in zip(speeds, names, COLOURS):
        svg.rect(at, 12, 16, 16, colour, opacity=0.7)
        svg.text(at + 24, 25, f"{name}: {speed} x as fast as C" if speed > 1 else name, "start")
        at += 255
    unit = 280 / 2  # of time: an even slice on node C takes two units
    for row, (title, widths) in enumerate([("Even slices", [2, 2, 2]), ("Slices as wide as the nodes are fast", speeds)]):
        y = 72 + 142 * row
        svg.text(16, y - 12, title, "start", weight="bold", size=14)
        cuts = offsets(widths, 330)
        seconds = [width / speed for width, speed in zip(widths, speeds)]
        for n, colour in enumerate(COLOURS[:3]):
            svg.rect(16 + cuts[n], y, cuts[n + 1] - cuts[n], 96, colour, f"{widths[n]}/6", opacity=0.7)
            bar = y + 34 * n
            svg.rect(400, bar, unit * seconds[n], 26, colour, f"{'ABC'[n]} computes", opacity=0.7)
            if seconds[n] < max(seconds):
                svg.rect(400 + unit * seconds[n], bar, unit * (max(seconds) - seconds[n]), 26, "#eee", "waits", "#999")
        end = 400 + unit * max(seconds)
        svg.text(end + 8, y + 52, "step ends" if row == 0 else "step ends, in half the time", "start")
    svg.text(181, 340, "one weight matrix over three ranks")
    svg.text(540, 340, "time of one step, without messages")
    svg.save("unequal_slices.svg")


if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    cuboid()
    linear("linear_even.svg", [1, 1], [1, 1, 1], [1, 1], "Y = X W^T on 2 x 3 x 2 ranks, even widths")
    linear("linear_uneven.svg", [3, 1], [3, 1, 2], [2, 1], "The same with widths 3:1, 3:1:2 and 2:1")
    block()
    head()
    unequal_slices()
