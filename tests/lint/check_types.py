#!/usr/bin/env python3
"""No two types of src have one name in one namespace.

    check_types.py [SOURCE_FOLDER]

A reader who meets a name must know which type is meant, and two definitions that two files see
together are an error that no compiler reports. Types in unnamed namespaces of different files count as
of the namespace around; types inside classes are named with their class; types inside functions do not
count, and two aliases of one type are one type.
"""
import collections
import pathlib
import re
import sys

SUFFIXES = {".hpp", ".cpp", ".h", ".cu", ".cuh"}

TOKEN = re.compile(r'[A-Za-z_]\w*|::|"|[^\s\w]')
NOISE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\''
    r'|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', re.S | re.M)
KEYWORDS = {"class", "struct", "union", "enum"}


def tokens_of(text):
    """(token, line) without comments, directives and the contents of literals."""
    def blank(match):
        literal = match[0].endswith(("\"", "'")) and not match[0].lstrip().startswith(("/", "#"))
        return ('""' if literal else " ") + "\n" * match[0].count("\n")

    text = NOISE.sub(blank, text)
    for number, line in enumerate(text.split("\n"), 1):
        for match in TOKEN.finditer(line):
            yield match[0], number


def skip_attributes(tokens, at):
    """Past [[...]], alignas(...) and macros such as __align__(16)."""
    while at < len(tokens):
        if tokens[at][0] == "[":
            closing = "]"
        elif tokens[at][0] == "alignas" or tokens[at][0].startswith("__"):
            at += 1
            if tokens[at][0] != "(":
                continue
            closing = ")"
        else:
            return at
        opening, depth = tokens[at][0], 0
        while True:
            depth += (tokens[at][0] == opening) - (tokens[at][0] == closing)
            at += 1
            if depth == 0:
                break
    return at


def defined_type(tokens, at):
    """The name of the type whose definition starts with the keyword at `at`, or None."""
    at += 1
    if tokens[at][0] in {"class", "struct"}:  # enum class
        at += 1
    at = skip_attributes(tokens, at)
    if not re.match(r"[A-Za-z_]", tokens[at][0]):
        return None, at
    name = tokens[at][0]
    at += 1
    while tokens[at][0] == "::":  # Outer::Inner, defined outside
        name += "::" + tokens[at + 1][0]
        at += 2
    if tokens[at][0] == "final":
        at += 1
    if tokens[at][0] == ":":
        while tokens[at][0] not in {"{", ";", ")"}:
            at += 1
    return (name, at) if tokens[at][0] == "{" else (None, at)


def namespace_of(tokens, at):
    """The name of the namespace that opens at `at` ("" if unnamed) and the place of its brace."""
    name = ""
    at += 1
    while tokens[at][0] not in {"{", ";", "="}:
        name += tokens[at][0]
        at += 1
    return (name, at) if tokens[at][0] == "{" else (None, at)


def types_of(text):
    """(full name, line, what an alias stands for) of every type that `text` defines outside functions."""
    tokens = list(tokens_of(text)) + [(";", 0)] * 8
    scopes, openings = [], {}  # scopes: a name, "" (transparent) or None (a function)
    for at, (token, line) in enumerate(tokens):
        before = tokens[at - 1][0] if at else ";"
        inside = None not in scopes
        if token == "namespace" and before != "using":
            name, brace = namespace_of(tokens, at)
            if name is not None:
                openings[brace] = name
        elif token in KEYWORDS and inside and before not in {"<", ",", "enum"}:
            name, brace = defined_type(tokens, at)
            if name is not None and brace not in openings:
                openings[brace] = name
                yield "::".join([s for s in scopes if s] + [name]), line, None
        elif token == "using" and inside and tokens[at + 2][0] == "=":
            end = next(i for i in range(at, len(tokens)) if tokens[i][0] == ";")
            target = " ".join(token for token, _ in tokens[at + 3:end])
            yield "::".join([s for s in scopes if s] + [tokens[at + 1][0]]), line, target
        elif token == "{":
            linkage = before == '"' and tokens[at - 3][0] == "extern"
            scopes.append(openings.get(at, "" if linkage else None))
        elif token == "}" and scopes:
            scopes.pop()


def faults(root):
    places = collections.defaultdict(list)
    for path in sorted((root / "src").rglob("*")):
        if path.suffix in SUFFIXES:
            file = path.relative_to(root).as_posix()
            for name, line, target in types_of(path.read_text(errors="replace")):
                places[name].append((f"{file}:{line}", target))
    if not places:
        yield "no types in src; wrong folder?"
    for name, found in sorted(places.items()):
        targets = {target for _, target in found}
        if len(found) > 1 and (None in targets or len(targets) > 1):
            yield f"{name} is defined at " + ", ".join(place for place, _ in found)


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2])
    found = list(faults(root))
    print("\n".join(found) if found else "every type has a name of its own")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
