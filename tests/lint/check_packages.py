#!/usr/bin/env python3
"""The Spack recipe depends on what jobs/packages.sh names for the build, no more and no less.

    check_packages.py [SOURCE_FOLDER]
"""
import ast
import pathlib
import subprocess
import sys

RECIPE = "packaging/spack/spack_repo/transformer3d/packages/transformer3d/package.py"
# Rows of the build that a recipe does not list: its compiler (a conflict with older ones), and what
# only makes a developer's builds shorter.
NOT_IN_RECIPES = {"gcc@12:", "ccache", "llvm+lld", "git"}
# Spack's names for languages, and what the GPU build needs, which is no package of Debian.
NOT_IN_TABLE = {"c", "cxx", "cuda@12.4:", "nccl", "cudnn"}


def table(root):
    words = subprocess.run(["bash", "-c", "source jobs/packages.sh && packages_of build 4"], cwd=root,
                           capture_output=True, text=True, check=True).stdout.split()
    return set(words)


def recipe(root):
    tree = ast.parse((root / RECIPE).read_text(), RECIPE)
    return {call.args[0].value for call in ast.walk(tree)
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "depends_on"}


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()
    wanted = table(root) - NOT_IN_RECIPES
    found = recipe(root) - NOT_IN_TABLE
    faults = [f"{RECIPE}: lacks {name}, which jobs/packages.sh names" for name in sorted(wanted - found)]
    faults += [f"{RECIPE}: {name} is not in jobs/packages.sh" for name in sorted(found - wanted)]
    print("\n".join(faults) if faults else f"{len(found)} packages, the same in the table and the recipe")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
