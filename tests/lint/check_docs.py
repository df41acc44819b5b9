#!/usr/bin/env python3
"""Documents point at things that exist, and nothing names a private place.

    check_docs.py [SOURCE_FOLDER]

Checked in every Markdown file: relative links, #anchors into Markdown files, and paths of the tree in
`back quotes` (`src/ops/ops.hpp`). In README.md and docs: every code block has a tag that says who runs it
(tests/support/document_blocks.py). Every `ctest -R NAME`, and every link [label.name](tests/FILE "test case"), names a
test that exists. Checked in every text file: no absolute path of somebody's machine.
"""
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import document_blocks  # noqa: E402

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
QUOTED_PATH = re.compile(r"`((?:src|tests|jobs|inputs|bench|docs|cmake|\.ci)/[A-Za-z0-9_./-]+)`")
TEST_LINK = re.compile(r"\[((?:unit|ops|mpi|cuda|emulation|system|slurm|lint|fuzz)\.\w+)\]\((\S+)(?:\s+\"([^\"]*)\")?\)")
CTEST = re.compile(r"ctest -R \"?([\w.|]+)")
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


def test_names(root):
    """The names that CTest gives to test files (tests/CMakeLists.txt)."""
    for path in (root / "tests").rglob("*.*"):
        label = path.relative_to(root / "tests").parts[0]
        if label in {"unit", "ops", "mpi", "cuda", "emulation", "system", "slurm", "lint", "fuzz"}:
            yield f"{label}.{path.name.split('.')[0]}"


def check_blocks(root, name, text):
    """Each code block has a tag; a test that a tag names is there and names the document."""
    for number, tag, _ in document_blocks.blocks(text):
        if tag is None and not document_blocks.ALL.search(text):
            yield f"{name}:{number}: code block without a tag that says who runs it (tests/support/document_blocks.py)"
        if tag and tag.startswith("tested by "):
            test = root / tag[len("tested by "):]
            if not test.is_file() or name not in test.read_text():
                yield f"{name}:{number}: {tag}: no such file, or it does not name {name}"


def check_test_link(root, name, label, target, case):
    """The fault of [label.name](file "test case"), or None: the file is of that test and has that test case."""
    path = (root / name).parent / target
    folder, _, stem = label.partition(".")
    if path.name.split(".")[0] != stem or f"/tests/{folder}/" not in path.resolve().as_posix():
        return f"{target} is not the test {label}"
    if case and f'TEST_CASE("{case}"' not in path.read_text(errors="replace"):
        return f"{target} has no test case {case}"
    return None


def check_tests(tests, name, number, line):
    """`ctest -R a|b` in a document: a and b are parts of names of tests."""
    for wanted in CTEST.findall(line):
        for part in wanted.split("|"):
            if not any(part in test for test in tests):
                yield f"{name}:{number}: no such test: {part}"


def faults(root):
    tests = set(test_names(root))
    for name in files_of(root):
        path = root / name
        if path.suffix in TEXT and name != "tests/lint/check_docs.py":
            for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
                if PRIVATE.search(line):
                    yield f"{name}:{number}: path of a private machine: {PRIVATE.search(line)[0]}"
        if path.suffix != ".md":
            continue
        if name == "README.md" or name.startswith("docs/"):
            yield from check_blocks(root, name, path.read_text(errors="replace"))
        for number, line in enumerate(without_code(path.read_text(errors="replace")), 1):
            for link in LINK.findall(line):
                fault = check_link(root, name, link)
                if fault:
                    yield f"{name}:{number}: {fault}"
            for link in TEST_LINK.findall(line):
                fault = check_test_link(root, name, *link)
                if fault:
                    yield f"{name}:{number}: {fault}"
            yield from check_tests(tests, name, number, line)
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
