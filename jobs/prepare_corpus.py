#!/usr/bin/env python3
"""Makes the quick start's text, one verse or paragraph a line.

    prepare_corpus.py FOLDER [FRACTION]

The text is the King James Bible where Debian's package bible-kjv is installed, elsewhere the
documentation that every Python has with it: the language reference and the standard library's
docstrings, 1.7 to 1.9 MB, the same for the same Python. Which of them is printed.

Writes FOLDER/train.txt and FOLDER/held_out.txt: the last FRACTION of the text (0.05, whole lines),
which neither the tokenizer nor the model sees before it is scored. Prints what a compressor needs for
it, in bits per byte:

    alone   xz -9 of held_out.txt
    after   xz -9 of the whole minus xz -9 of train.txt: it may look back at all training text
"""
import ast
import json
import lzma
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import warnings

EVERYTHING = "gen1:1-rev22:21"
LEAST_BYTES = 1_000_000  # of text that a model of the quick start can learn something from
# Folders of the standard library that are not its documentation, or not part of every installation.
LEFT_OUT = {"site-packages", "dist-packages", "test", "tests", "idle_test", "lib2to3", "pydoc_data"}


def verses():
    """'Ge1:1 In the beginning ...' a line -> the verse alone, blanks made single."""
    text = subprocess.run(["bible", "-f", EVERYTHING], check=True, capture_output=True).stdout
    for line in text.decode("ascii", "ignore").splitlines():
        found = re.match(r"\S+?\d+:\d+ (.*)", line)
        if found and found[1].strip():
            yield " ".join(found[1].split())


def documentation():
    """The language reference, then the docstrings of the standard library by file name."""
    from pydoc_data import topics

    for name in sorted(topics.topics):
        yield topics.topics[name]
    library = pathlib.Path(sysconfig.get_paths()["stdlib"])
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for path in sorted(library.rglob("*.py")):
        if LEFT_OUT.intersection(path.relative_to(library).parts):
            continue
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError, OSError):  # a template, or not readable: left out
            continue
        for node in ast.walk(tree):
            if isinstance(node, documented):
                yield ast.get_docstring(node) or ""


def paragraphs():
    """Each paragraph of the documentation once, on one line, without the very short ones."""
    seen = set()
    for text in documentation():
        for part in re.split(r"\n\s*\n", text):
            line = " ".join(part.encode("ascii", "ignore").decode().split())
            if len(line) > 40 and line not in seen:
                seen.add(line)
                yield line


def corpus():
    """(lines, where they are from)"""
    if shutil.which("bible"):
        try:
            lines = list(verses())
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"prepare_corpus: bible does not work: {error}", file=sys.stderr)
        else:
            if len(lines) >= 30000:
                return lines, "the King James Bible (bible-kjv)"
            print(f"prepare_corpus: only {len(lines)} verses from bible; is bible-kjv whole?",
                  file=sys.stderr)
    warnings.simplefilter("ignore")  # of the library's own sources
    return list(paragraphs()), f"Python {platform.python_version()}'s own documentation"


def xz_bytes(data):
    return len(lzma.compress(data, preset=9))  # the same bytes as `xz -9`


def main():
    folder = pathlib.Path(sys.argv[1])
    fraction = float(sys.argv[2]) if len(sys.argv) > 2 else 0.05
    lines, source = corpus()
    whole = "".join(line + "\n" for line in lines).encode()
    if len(whole) < LEAST_BYTES:
        sys.exit(f"prepare_corpus: {source} is only {len(whole):,} bytes of text; install bible-kjv, or "
                 f"train on a text of your own (docs/01-start.md, By hand)")
    cut = whole.rindex(b"\n", 0, int(len(whole) * (1 - fraction))) + 1
    rest, held_out = whole[:cut], whole[cut:]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train.txt").write_bytes(rest)
    (folder / "held_out.txt").write_bytes(held_out)
    facts = {
        "source": source,
        "bytes": len(whole),
        "held_out_bytes": len(held_out),
        "xz_alone": round(8 * xz_bytes(held_out) / len(held_out), 4),
        "xz_after": round(8 * (xz_bytes(whole) - xz_bytes(rest)) / len(held_out), 4),
    }
    (folder / "corpus.json").write_text(json.dumps(facts) + "\n")
    print(f"{source}: {len(whole):,} bytes of text, the last {len(held_out):,} held out; xz -9 needs "
          f"{facts['xz_alone']:.3f} bits per byte for those ({facts['xz_after']:.3f} after the rest)")


if __name__ == "__main__":
    main()
