#!/usr/bin/env python3
"""Documents point at things that exist, and nothing names a private place.

    check_docs.py [SOURCE_FOLDER]

Checked in every Markdown file: relative links, #anchors into Markdown files, and paths of the tree in
`back quotes` (`src/ops/ops.hpp`). Checked in every text file: no absolute path of somebody's machine.
"""
import pathlib
import re
import subprocess
import sys

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
QUOTED_PATH = re.compile(r"`((?:src|tests|jobs|inputs|bench|docs|cmake|\.ci)/[A-Za-z0-9_./-]+)`")
# The folders where people's trees lie; /usr, /tmp, /etc, /proc, /sys, /dev and /root are everybody's.
PRIVATE = re.compile(r"(?<![\w.$}/-])/(?:home/(?!user\b)[a-z]\w*|Users/\w+|work/\w+|mnt/\w+|data/\w+)/")
TEXT = {".md", ".cpp", ".hpp", ".h", ".cu", ".cuh", ".py", ".sh", ".toml", ".cmake", ".txt", ".json",
        ".cff", ".sbatch", ".yml", ".yaml"}


def files_of(root):
    """As git sees them, or everything below but build and runs where there is no git."""
    git = subprocess.run(["git", "-C", str(root), "ls-files", "-z", "--cached", "--others",
                          "--exclude-standard"], capture_output=True, text=True)
    if git.returncode == 0 and git.stdout:
        names = [n for n in git.stdout.split("\0") if n]
    else:
        names = [p.relative_to(root).as_posix() for p in root.rglob("*")
                 if p.relative_to(root).parts[0] not in {"build", "runs", ".git"}]
    return [n for n in sorted(set(names)) if (root / n).is_file()]


def without_code(text):
    """Fenced blocks become empty lines: what stands there is an example."""
    out, fenced = [], False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
            line = ""
        out.append("" if fenced else line)
    return out


def anchors(path):
    """The anchors that GitHub makes of the headings of a Markdown file."""
    found = set()
    for line in without_code(path.read_text(errors="replace")):
        if line.startswith("#"):
            heading = re.sub(r"[^\w\- ]", "", line.lstrip("#").strip().lower())
            found.add(heading.replace(" ", "-"))
    return found


def check_link(root, name, link):
    """The fault of one link, or None."""
    if re.match(r"[a-z]+:", link):
        return None
    target, _, anchor = link.partition("#")
    path = (root / name).parent / target if target else root / name
    if not path.exists():
        return f"no such file: {link}"
    if anchor and path.suffix == ".md" and anchor not in anchors(path):
        return f"no such heading: {link}"
    return None


def faults(root):
    for name in files_of(root):
        path = root / name
        if path.suffix in TEXT and name != "tests/lint/check_docs.py":
            for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
                if PRIVATE.search(line):
                    yield f"{name}:{number}: path of a private machine: {PRIVATE.search(line)[0]}"
        if path.suffix != ".md":
            continue
        for number, line in enumerate(without_code(path.read_text(errors="replace")), 1):
            for link in LINK.findall(line):
                fault = check_link(root, name, link)
                if fault:
                    yield f"{name}:{number}: {fault}"
            for quoted in QUOTED_PATH.findall(line):
                example = re.search(r"NAME|\.\.\.", quoted)
                if not example and not (root / quoted.rstrip("/.")).exists():
                    yield f"{name}:{number}: no such file or folder: {quoted}"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()
    found = list(faults(root))
    print("\n".join(found) if found else "documents point at things that exist")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
