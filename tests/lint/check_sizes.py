#!/usr/bin/env python3
"""Files stay small: none over 800 lines, the median of src at most 150, nine in ten under 400.

    check_sizes.py [SOURCE_FOLDER]
"""
import pathlib
import statistics
import sys

MOST, MEDIAN, NINE_IN_TEN = 800, 150, 400
SUFFIXES = {".hpp", ".cpp", ".h", ".cu", ".cuh", ".py", ".sh", ".cmake"}


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2])
    sizes, faults = {}, []
    for folder in ("src", "tests", "bench", "jobs", "cmake"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SUFFIXES and path.is_file():
                sizes[path.relative_to(root).as_posix()] = len(path.read_bytes().splitlines())
    for name, lines in sizes.items():
        if lines > MOST:
            faults.append(f"{name}: {lines} lines, at most {MOST}")
    source = sorted(lines for name, lines in sizes.items() if name.startswith("src/"))
    if not source:
        sys.exit("check_sizes: no source files; wrong folder?")
    median = statistics.median(source)
    if median > MEDIAN:
        faults.append(f"src: median {median} lines, at most {MEDIAN}")
    if source[int(0.9 * (len(source) - 1))] >= NINE_IN_TEN:
        faults.append(f"src: nine in ten files have fewer than {NINE_IN_TEN} lines; they do not")
    print("\n".join(faults) if faults else
          f"{len(source)} files in src, median {median:g} lines, largest {source[-1]}")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
