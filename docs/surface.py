#!/usr/bin/env python3
"""Says what of the public surface is undocumented, or shown in no snippet: `surface.py WORK SNIPPETS ARTICLES…`, for script/docs.

WORK has the modules' symbol graphs and the snippets' syntax trees, as the compiler writes them: a symbol counts as shown where a
snippet means it, not where the same word stands. Exit 1 where something is missing.
"""
import json
import pathlib
import re
import sys

TYPES = {"swift.struct", "swift.enum", "swift.class", "swift.protocol", "swift.actor", "swift.typealias", "swift.associatedtype"}
# Used without being named: by `==`, by printing, by `for await`, by a set.
UNNAMED = {"hash(into:)", "description", "customMirror", "makeAsyncIterator()", "next()", "next(isolation:)", "init(rawValue:)",
           "Element", "Failure", "AsyncIterator", "Iterator"}


def symbols(work):
    for path in sorted((work / "graphs").glob("*/*.symbols.json")):
        for symbol in json.loads(path.read_text())["symbols"]:
            # What the compiler makes has no place in a file; what is another module's is documented there.
            if "location" in symbol and symbol["identifier"]["precise"].startswith("s:"):
                yield path.parent.name, symbol


def is_shown(symbol, used, text, patterns):
    kind, name = symbol["kind"]["identifier"], symbol["pathComponents"][-1]
    word = re.escape(name.split("(")[0])
    if symbol["identifier"]["precise"] in used or name in UNNAMED or kind == "swift.func.op" or "Iterator" in symbol["pathComponents"]:
        return True
    if kind in TYPES:
        return re.search(rf"\b{word}\b", text) is not None
    # The tree names no cases in patterns, and no requirements that a snippet's type meets.
    if kind == "swift.enum.case":
        return re.search(rf"\.{word}\b", patterns) is not None
    return re.search(rf"\b(func|var|let) {word}\b", text) is not None


def strays(articles, text):
    """Code in articles that no snippet has, line for line."""
    lines = {line.strip() for line in text.splitlines()}
    for path in articles:
        for block in re.findall(r"```swift\n(.*?)```", path.read_text(), re.S):
            for line in block.splitlines():
                if line.strip() and line.strip() not in lines:
                    yield path, line.strip()


def main():
    work, snippets, *articles = map(pathlib.Path, sys.argv[1:])
    text = "\n".join(path.read_text() for path in sorted(snippets.glob("*.swift")))
    patterns = "\n".join(line for line in text.splitlines() if re.search(r"\bcase\b", line))
    used = {usr for path in (work / "ast").glob("*.json") for usr in re.findall(r'"(s:[^"]+)"', path.read_text())}
    missing, counted = [], 0
    for module, symbol in symbols(work):
        counted += 1
        place = f"{symbol['location']['uri'].split('/Sources/')[-1]}:{symbol['location']['position']['line'] + 1}"
        named = f"{module}: {'.'.join(symbol['pathComponents'])} ({place})"
        if "docComment" not in symbol:
            missing.append(f"no documentation: {named}")
        if not is_shown(symbol, used, text, patterns):
            missing.append(f"in no snippet: {named}")
    missing += [f"no snippet's code: {path}: {line}" for path, line in strays(articles, text)]
    for line in missing:
        print(line, file=sys.stderr)
    # A check that finds no symbols, or whose trees are empty, has checked nothing.
    if missing or counted < 200 or len(used) < 100:
        sys.exit(f"docs: {len(missing)} of {counted} public symbols want something; {len(used)} are used in snippets")
    print(f"docs: {counted} public symbols, each documented and shown")


if __name__ == "__main__":
    main()
