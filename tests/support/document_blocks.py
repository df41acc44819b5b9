#!/usr/bin/env python3
"""The code blocks of the documents, and what each one's tag says of it.

    document_blocks.py DOCUMENT.md    prints a bash script of what is to be run, in the document's order

The tag is the line before the block:

    <!-- run -->                            commands; where lines begin with "$ ", only these are commands
    <!-- file: NAME -->                     saved as NAME before the commands that follow
    <!-- input -->                          tables of an input file: a dry run takes them
    <!-- tested by tests/system/X.sh -->    that test runs it, and names the document
    <!-- not run: WHY -->                   output, other machines, or what would take too long

A line <!-- blocks not run: WHY --> anywhere stands for all blocks of a document that have no tag.
tests/lint/check_docs.py demands the tags, tests/system/documents.sh runs what the script says.
"""
import pathlib
import re
import sys

TAG = re.compile(r"<!-- (run|input|file: \S+|tested by tests/\S+|not run: .+) -->")
ALL = re.compile(r"^<!-- blocks not run: .+ -->$", re.M)


def blocks(text):
    """(line number, tag or None, body) of each block between fences; indented ones carry no tag."""
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        line, before = lines[at], lines[at - 1].strip() if at else ""
        end = at + 1
        if line.lstrip().startswith("```"):
            while end < len(lines) and not lines[end].lstrip().startswith("```"):
                end += 1
            tag = TAG.fullmatch(before)
            yield at + 1, tag and tag[1], "\n".join(lines[at + 1:end]) + "\n"
            end += 1
        elif line.startswith("    ") and not before and not re.match(r"\s*([-*]|\d+\.)\s", line):
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            yield at + 1, None, "\n".join(lines[at:end]) + "\n"
        at = end


def commands(body):
    said = [line[2:] for line in body.splitlines() if line.startswith("$ ")]
    return "\n".join(said) + "\n" if said else body


def script(name, text):
    out = ""
    for number, tag, body in blocks(text):
        if tag == "run":
            out += f"# {name}:{number}\n{commands(body)}"
        elif tag == "input":
            out += f"# {name}:{number}\ntakes_input <<'T3D_END'\n{body}T3D_END\n"
        elif tag and tag.startswith("file: "):
            out += f"# {name}:{number}\ncat > {tag[6:]} <<'T3D_END'\n{body}T3D_END\n"
    return out


if __name__ == "__main__":
    print(script(sys.argv[1], pathlib.Path(sys.argv[1]).read_text()), end="")
