#!/usr/bin/env python3
"""Measures how readable the Swift sources are.

`script/measure-code [--json] [--list MEASURE] [--check MEASURE]… [FOLDER…]` (default `Sources Tools`)
prints one row for each measure with its value, its aim and whether it is met, or
argued in a decision; `--list unlabelled` lists the places of one measure. `--check unlabelled` prints nothing
while the aim of the measure is met, and otherwise its row and places; script/lint uses it. The script reads
the sources with regular expressions, after it has removed comments and strings, and relies on swift-format's
layout. `riddles` also reads the comments of Examples and the SDK's articles, unless folders are
given. Exit 1 if an aim is missed that no decision argues, except with `--json` and `--list`.

`script/measure-code --modules [--since COMMIT] [--json]` prints the lines of each module instead, and, with a
commit, how they changed since: lines that came from or went to another module with their file, lines added, and
lines removed.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

# Words that end in -ing or -ed and are nouns of their own; counts as the last word of a name.
NOUNS = {"String", "Encoding", "Ring", "Padding", "Setting", "Thing", "Ping", "Warning", "Building", "Timing",
         "Stretching", "Routing", "Framing", "Pairing", "Sibling", "Recording", "Speed", "Feed", "Seed",
         "Need", "Embed", "Shed", "Red", "Id", "Bed", "Heading", "Binding", "Finding", "Coding", "Polling",
         "Locked", "Multiplexed"}
TOKENS = re.compile(r'("""(?:.|\n)*?"""|#+"(?:.|\n)*?"#+|"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*(?:.|\n)*?\*/)')

# Missed aims that a decision gives the reasons for, by the name of their row.
ARGUED = {"files": "docs/decisions/0066-number-of-files.md"}

# Words that make a sentence hide its subject: "who asks", "nobody", "his". A relative clause with a noun
# before it ("an attacker who") names its subject and is no riddle.
RIDDLE = re.compile(r"\b(?:[Ww]ho(?:ever|m)?|[Nn]obody|[Ss]omebody|[Aa]nybody|[Hh]e|[Hh]is|[Hh]im)\b")
ANTECEDENT = re.compile(r"\b(?:attacker|user|person|people|caller|client|stranger|developer|administrator|operator|"
                        r"reader|maintainer|team|holder)s? whom?\b")

# A type of one platform has a twin of the same name for the other.
TWIN = re.compile(r"\+(Apple|Linux|Darwin|OpenSSL)$")


def without_text(source):
    """The source with comments and strings blanked, at the same line numbers."""
    def blank(match):
        text = match[0]
        return ('""' if text[0] in '"#' else "") + "\n" * text.count("\n")
    return TOKENS.sub(blank, source)


def arguments(code, start):
    """The text between the bracket at `start` and its partner, and where it ends."""
    depth = 0
    for at in range(start, len(code)):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(code[at], 0)
        if depth == 0:
            return code[start + 1:at], at
    return "", start


def split(text):
    parts, depth, last = [], 0, 0
    for at, letter in enumerate(text):
        depth += {"(": 1, "[": 1, "{": 1, "<": 1, ")": -1, "]": -1, "}": -1}.get(letter, 0)
        if letter == ">" and text[at - 1] != "-":
            depth -= 1
        if letter == "," and depth == 0:
            parts.append(text[last:at])
            last = at + 1
    return [part for part in (part.strip() for part in parts + [text[last:]]) if part]


class File:
    def __init__(self, path):
        self.path, self.source = path, path.read_text(encoding="utf-8")
        self.lines = self.source.splitlines()
        self.code = without_text(self.source)

    def place(self, at):
        return f"{self.path}:{self.code.count(chr(10), 0, at) + 1}"

    def declarations(self):
        """Each function's or initializer's place and parameters, operators left out."""
        for match in re.finditer(
                r"\b(?:func\s+[a-zA-Z_`][\w`]*|init[?!]?|subscript)\s*(?:<[^>(]*>)?\(", self.code):
            if re.search(r"(?:\.|self\.|super\.)$", self.code[:match.start()]):
                continue
            before = self.code[self.code.rfind("\n", 0, match.start()) + 1:match.start()]
            if match[0].startswith("init") and re.search(
                    r"[=({,.?:]\s*$|return\s*$", before.strip() and before):
                continue
            yield match.start(), split(arguments(self.code, match.end() - 1)[0])

    def types(self):
        """Top-level types: at the left margin, or one step in within a conditional block."""
        pattern = r"^(?:    )?(?:@\w+(?:\([^)]*\))?\s+)*" \
                  r"(?:(?:public|package|internal|private|fileprivate|final|indirect|open)\s+)*" \
                  r"(struct|class|enum|protocol|actor)\s+(\w+)"
        conditional = self.code.lstrip().startswith("#if")
        for match in re.finditer(pattern, self.code, re.M):
            indented = match[0].startswith("    ")
            if indented and not conditional:
                continue
            yield match.start(), match[1], match[2], "private" in match[0].split(match[1])[0]


def riddles(paths):
    """Comment lines of Swift files, and lines of articles outside of code, that hide their subject."""
    found = []
    for path in paths:
        is_article, in_code = path.suffix == ".md", False
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if is_article and line.startswith("```"):
                in_code = not in_code
            text = "" if in_code else line if is_article else line.partition("//")[2]
            # Code in a comment or an article keeps its names.
            if RIDDLE.search(ANTECEDENT.sub("", re.sub(r"`[^`]*`", "", text))):
                found.append(f"{path}:{number}: {line.strip()[:80]}")
    return found


def measure(files, prose):
    lengths = sorted(len(file.lines) for file in files)
    listing = {}
    listing["under-30"] = [f"{file.path}: {len(file.lines)} lines" for file in files if len(file.lines) < 30]
    listing["type-topic"] = [str(file.path) for file in files
                             if "+" in file.path.stem and not TWIN.search(file.path.stem)]
    later, unlabelled = 0, []
    for file in files:
        for at, parameters in file.declarations():
            later += max(len(parameters) - 1, 0)
            unlabelled += [f"{file.place(at)}: {parameter[:60]}" for parameter in parameters[1:]
                           if re.match(r"_\s", parameter)]
    listing["unlabelled"] = unlabelled
    named, verbal, errors, mutexes = {}, [], [], []
    for file in files:
        for at, kind, name, is_private in file.types():
            if not is_private and not TWIN.search(file.path.stem):
                named.setdefault(name, []).append(file.place(at))
            last_word = re.search(r"[A-Z]?[a-z0-9]*$", name)[0]
            if kind != "protocol" and last_word not in NOUNS and re.search(
                    r"[a-z](?:ing|ed)$|^(?:Seen|Said|Heard|Kept|Known|Told)$", name):
                verbal.append(f"{file.place(at)}: {name}")
        for match in re.finditer(r"\b(?:struct|enum|class)\s+(\w+)[^{\n]*:\s*[^{\n]*\bError\b", file.code):
            errors.append(f"{file.place(match.start())}: {match[1]}")
        # `Locked` is the package's lock; what else initializes a mutex, or is one, is counted.
        if file.path.name != "Locked.swift":
            mutexes += [file.place(match.start()) for match in re.finditer(
                r"pthread_mutex_init\(|\bos_unfair_lock(?:_s)?\(\)|\bMutex[<(]|\bNSLock\(", file.code)]
    listing["names-twice"] = [f"{name}: {', '.join(places)}" for name, places in sorted(named.items())
                              if len(places) > 1]
    listing["verbal-names"], listing["error-types"], listing["mutexes"] = verbal, errors, mutexes
    for width in (120, 110):
        # Generated data is exempt, as from the formatter.
        listing[f"over-{width}"] = [f"{file.path}:{number}" for file in files
                                    if not any("swift-format-ignore-file" in line for line in file.lines[:3])
                                    for number, line in enumerate(file.lines, 1) if len(line) > width]
    listing["riddles"] = riddles(prose)
    share = 100 * len(unlabelled) / max(later, 1)
    rows = [
        ("files", len(files), 600, "<="), ("lines", sum(lengths), None, ""),
        ("median lines of a file", statistics.median(lengths), (90, 130), "in"),
        ("p90 lines of a file", lengths[int(len(lengths) * 0.9)], None, ""),
        ("files under 30 lines (under-30)", len(listing["under-30"]), 25, "<="),
        ("Type+Topic files that are no platform twins (type-topic)", len(listing["type-topic"]), 15, "<="),
        ("later parameters without a label, in % (unlabelled)", round(share, 1), 3, "<="),
        ("top-level type names used twice (names-twice)", len(listing["names-twice"]), 0, "<="),
        ("gerund or participle type names (verbal-names)", len(verbal), 0, "<="),
        ("lines over 120 columns (over-120)", len(listing["over-120"]), 0, "<="),
        ("lines over 110 columns (over-110)", len(listing["over-110"]), 0, "<="),
        ("error types (error-types)", len(errors), None, ""),
        ("mutexes that are no Locked (mutexes)", len(mutexes), 1, "<="),
        ("comment lines with who, nobody, somebody, he (riddles)", len(listing["riddles"]), 0, "<="),
    ]
    return rows, listing


def is_met(value, aim, how):
    return aim is None or (aim[0] <= value <= aim[1] if how == "in" else value <= aim)


def listed(root, patterns):
    names = subprocess.run(["git", "-C", str(root), "ls-files", "-z", *patterns],
                           capture_output=True, text=True, check=True).stdout.split("\0")
    return [pathlib.Path(name) for name in names if name and (root / name).exists()]


def module_of(path):
    """The module of a Swift file: the folder below Sources, Stores or Tools. Until Tools held all of development, its
    folders lay at the top, with the program's files in Tools itself."""
    parts = pathlib.PurePath(path).parts
    if path.startswith(("Sources/Stores/", "Tools/Benchmarks/")):
        return "/".join(parts[:3])
    if parts[0] in ("Lab", "Conformance", "Model"):
        return f"Tools/{parts[0]}"
    if parts[0] == "Benchmarks":
        return "/".join(("Tools", *parts[:2]))
    if parts[0] == "Tools" and len(parts) == 2:
        return "Tools/Program"
    return "/".join(parts[:2])


def module_lines(root):
    """The lines of each module."""
    lines = collections.Counter()
    for path in listed(root, ["Sources/*.swift", "Tools/*.swift"]):
        lines[module_of(str(path))] += len((root / path).read_text(encoding="utf-8").splitlines())
    return lines


def module_changes(root, commit):
    """For each module: lines moved in, moved out, added and removed between a commit and the working tree. A file that
    went to another module keeps its name or most of its lines; the indentation of a line does not count."""
    def git(*arguments):
        return subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True).stdout

    def old(path):
        return collections.Counter(line.strip() for line in git("show", f"{commit}:{path}").splitlines())

    def new(path):
        return collections.Counter(line.strip() for line in (root / path).read_text(encoding="utf-8").splitlines())

    roots = ["Sources", "Tools", "Lab", "Conformance", "Benchmarks", "Model"]
    fields = iter(git("diff", "--name-status", "-z", "-M40%", "-l0", commit, "--",
                      *(f"{folder}/*.swift" for folder in roots)).split("\0"))
    pairs, gone, come = [], {}, {}
    for status in fields:
        if status.startswith("R"):
            pairs.append((next(fields), next(fields)))
        elif status:
            path = next(fields)
            if status == "M":
                pairs.append((path, path))
            else:
                (gone if status == "D" else come)[pathlib.PurePath(path).name] = path
    pairs += [(path, come.pop(name, None)) for name, path in gone.items()]
    pairs += [(None, path) for path in come.values()]
    changes = collections.defaultdict(collections.Counter)
    for before, after in pairs:
        was, now = before and old(before), after and new(after)
        kept = sum((was & now).values()) if was and now else 0
        if was:
            changes[module_of(before)]["removed"] += sum(was.values()) - kept
        if now:
            changes[module_of(after)]["added"] += sum(now.values()) - kept
        if kept and module_of(before) != module_of(after):
            changes[module_of(before)]["moved_out"] += kept
            changes[module_of(after)]["moved_in"] += kept
    return changes


def print_modules(root, commit, as_json):
    lines = module_lines(root)
    changes = module_changes(root, commit) if commit else {}
    columns = ["moved_in", "moved_out", "added", "removed"] if commit else []
    rows = [{"module": name, "lines": lines[name], **{column: changes.get(name, {}).get(column, 0) for column in columns}}
            for name in sorted(set(lines) | set(changes))]
    for name, prefix in (("Sources", "Sources/"), ("Tools", "Tools/"), ("all", "")):
        rows.append({"module": name, **{column: sum(row[column] for row in rows if row["module"].startswith(prefix)
                                                    and "/" in row["module"]) for column in ["lines", *columns]}})
    if as_json:
        print(json.dumps(rows))
        return
    print("".join([f"{'module':<28}", *(f"{column.replace('_', ' '):>11}" for column in ["lines", *columns])]))
    for row in rows:
        print("".join([f"{row['module']:<28}", *(f"{row[column]:>11}" for column in ["lines", *columns])]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", help="folders of Swift files (Sources Tools)")
    parser.add_argument("--json", action="store_true", help="the rows as JSON")
    parser.add_argument("--list", metavar="MEASURE",
                        help="the places of one measure, by its word in brackets")
    parser.add_argument("--check", metavar="MEASURE", action="append", default=[],
                        help="only the measures that miss their aim, with their places; for several measures, repeat it")
    parser.add_argument("--modules", action="store_true", help="the lines of each module")
    parser.add_argument("--since", metavar="COMMIT", help="with --modules: how they changed since a commit")
    options = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parent.parent
    if options.modules:
        print_modules(root, options.since, options.json)
        return
    if options.since:
        parser.error("--since needs --modules")
    folders = options.folders or ["Sources", "Tools"]
    paths = listed(root, [f"{folder}/*.swift" for folder in folders])
    if not paths:
        sys.exit(f"measure-code: no Swift files below {', '.join(folders)}")
    more = [] if options.folders else ["Examples/*.swift", "Sources/*.docc/*.md"]
    os.chdir(root)
    rows, listing = measure([File(path) for path in paths], paths + (listed(root, more) if more else []))
    if options.list:
        if options.list not in listing:
            sys.exit(f"measure-code: no measure {options.list}; expected one of {', '.join(listing)}")
        print("\n".join(listing[options.list]))
        return
    if options.json:
        print(json.dumps([{"measure": name, "value": value, "aim": aim, "met": is_met(value, aim, how),
                           "argued": ARGUED.get(name)} for name, value, aim, how in rows]))
        return
    missed = 0
    words = {word[1]: row for row in rows if (word := re.search(r"\((\S+)\)$", row[0]))}
    for word in options.check:
        if word not in words or words[word][2] is None:
            sys.exit(f"measure-code: no measure {word} with an aim")
        name, value, aim, how = words[word]
        if not is_met(value, aim, how):
            missed += 1
            print(f"{name}: {value}, aim {aim}", *listing[word], sep="\n    ")
    if options.check:
        sys.exit(1 if missed else 0)
    for name, value, aim, how in rows:
        met, reasons = is_met(value, aim, how), ARGUED.get(name)
        missed += not met and not reasons
        text = "" if aim is None else f"aim {aim[0]} to {aim[1]}" if how == "in" else f"aim {aim}"
        result = "" if aim is None else "met" if met else f"argued: {reasons}" if reasons else "missed"
        print(f"{name:62}{value:>10}  {text:14}{result}")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
