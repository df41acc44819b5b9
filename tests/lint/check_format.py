#!/usr/bin/env python3
"""C++ is formatted as .clang-format says; passes with a remark where clang-format is missing.

    check_format.py [SOURCE_FOLDER] [--fix]

Versions of clang-format differ in details: only 14 (Debian 12) is the judge, others are not asked.
"""
import pathlib
import re
import shutil
import subprocess
import sys

VERSION = 14


def find_clang_format():
    for name in (f"clang-format-{VERSION}", "clang-format"):
        program = shutil.which(name)
        if program:
            text = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
            found = re.search(r"version (\d+)", text)
            if found and int(found[1]) == VERSION:
                return program
    return None


def main():
    arguments = [a for a in sys.argv[1:] if not a.startswith("-")]
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parents[2])
    files = [str(p) for folder in ("src", "tests", "bench") for p in sorted((root / folder).rglob("*"))
             if p.suffix in {".hpp", ".cpp", ".h", ".cu", ".cuh"}]
    program = find_clang_format()
    if not program:
        print(f"clang-format {VERSION} is not here: nothing checked")
        return
    if not files:
        sys.exit("check_format: no source files; wrong folder?")
    if "--fix" in sys.argv:
        subprocess.run([program, "-i", *files], check=True)
        return
    result = subprocess.run([program, "--dry-run", *files], capture_output=True, text=True)
    wrong = sorted(set(re.findall(r"^(\S+?):\d+:\d+: warning", result.stderr, re.M)))
    if wrong or result.returncode:
        print("not formatted (tests/lint/check_format.py --fix does it):")
        print("\n".join("  " + str(pathlib.Path(w).relative_to(root)) for w in wrong) or result.stderr)
        sys.exit(1)
    print(f"{len(files)} files are formatted")


if __name__ == "__main__":
    main()
