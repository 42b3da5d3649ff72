#!/usr/bin/env python3
"""Plants mistakes in the sources, one at a time, and demands that a test finds each.

Each mistake is an entry of Tests/Mutations/*.toml: a file, a text that occurs there exactly once, its
replacement, one line that describes the mistake, and the tests of which one must fail. The tool works in a copy
of the tracked files with a debug build of its own (.build-mutate/tree; the first build takes minutes). For each
mistake it replaces the text, builds, runs only the named tests and restores the file. A mistake that does not
compile is an error of its entry.

Before the first mistake the named tests of all selected entries run without any, and must pass. Exit 0: all
mistakes were caught; 1: a mistake survived, does not compile or does not apply; 2: the arguments are wrong.
"""
import argparse
import json
import pathlib
import random
import re
import subprocess
import sys
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
KEYS = {"id", "file", "text", "replacement", "mistake", "tests"}


class EntryError(Exception):
    pass


def entries():
    """All entries, by the names of their files. Each has the keys of `KEYS`, and `group`: its file's name."""
    found, names = [], set()
    for path in sorted((ROOT / "Tests/Mutations").glob("*.toml")):
        with path.open("rb") as file:
            for entry in tomllib.load(file)["mutation"]:
                if set(entry) != KEYS:
                    keys = ", ".join(sorted(KEYS))
                    raise EntryError(f"{path.name}: {entry.get('id')}: expected the keys {keys}")
                if entry["id"] in names:
                    raise EntryError(f"{path.name}: the id {entry['id']} is there twice")
                names.add(entry["id"])
                found.append(entry | {"group": path.stem})
    return found


def mutated(entry, tree):
    """The file's content with the mistake in it."""
    path = tree / entry["file"]
    if not path.is_file():
        raise EntryError(f"{entry['id']}: there is no file {entry['file']}")
    source = path.read_text(encoding="utf-8")
    count = source.count(entry["text"])
    if count != 1:
        raise EntryError(
            f"{entry['id']}: the text occurs {count} times in {entry['file']}; expected once: {entry['text']!r}")
    if entry["replacement"] == entry["text"]:
        raise EntryError(f"{entry['id']}: the replacement is the text")
    return source.replace(entry["text"], entry["replacement"])


def declared():
    """The names of test suites and test modules, and of pytest files, that entries may name."""
    names = set()
    for path in (ROOT / "Tests").rglob("*.swift"):
        source = path.read_text(encoding="utf-8")
        names |= set(re.findall(r"\b(?:struct|class|enum|extension) +(\w+)", source))
    return names


def check(chosen):
    """What is wrong with the entries: texts that do not occur once, tests that do not exist."""
    suites, wrong = declared(), []
    for entry in chosen:
        try:
            mutated(entry, ROOT)
        except EntryError as error:
            wrong.append(str(error))
        for test in entry["tests"]:
            if test.endswith(".py") or ".py::" in test:
                if not (ROOT / test.partition("::")[0]).is_file():
                    wrong.append(f"{entry['id']}: there is no {test}")
                continue
            module, _, rest = test.partition(".")
            suite = rest.partition("/")[0]
            if not (ROOT / "Tests" / module).is_dir() or suite and suite not in suites:
                wrong.append(f"{entry['id']}: there is no test suite {test}")
    return wrong


def update(tree):
    """Makes the tracked files of `tree` those of the working copy. Files that are equal keep their times, so that
    the next build is incremental."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
    wanted = {name for name in listed.decode().split("\0") if name and (ROOT / name).exists()}
    record = tree / ".build/mutate-files"
    former = set(record.read_text().split("\0")) if record.exists() else set()
    for name in former - wanted:
        if name:
            (tree / name).unlink(missing_ok=True)
    for name in wanted:
        source, target = ROOT / name, tree / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink():
            if not target.is_symlink() or target.readlink() != source.readlink():
                target.unlink(missing_ok=True)
                target.symlink_to(source.readlink())
        elif not target.is_file() or target.read_bytes() != source.read_bytes():
            target.write_bytes(source.read_bytes())
            target.chmod(source.stat().st_mode)
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text("\0".join(sorted(wanted)))


class Runner:
    def __init__(self, tree, seconds):
        self.tree, self.seconds = tree, seconds

    def run(self, command, limit):
        """The exit status and the output; 124 where the command takes longer than `limit` seconds."""
        try:
            done = subprocess.run(command, cwd=self.tree, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=limit)
            return done.returncode, done.stdout.decode(errors="replace")
        except subprocess.TimeoutExpired as expired:
            return 124, (expired.stdout or b"").decode(errors="replace")

    def build(self):
        """Nothing, or the compiler's errors."""
        status, output = self.run(["swift", "build", "--build-tests"], 7200)
        if status == 0:
            return None
        errors = [line for line in output.splitlines() if "error:" in line]
        return "\n".join(dict.fromkeys(errors[:5])) or output[-500:]

    def test(self, tests):
        """Whether the tests pass, and what says so: the names of tests that failed, or that none ran."""
        failed = []
        swift = [test for test in tests if ".py" not in test]
        python = [test for test in tests if ".py" in test]
        if swift:
            pattern = "|".join("^" + re.escape(test) + r"([./]|$)" for test in swift)
            status, output = self.run(["swift", "test", "--skip-build", "--filter", pattern], self.seconds)
            ran = re.search(r"Test run with (\d+) test", output)
            if status == 0 and (ran is None or ran[1] == "0"):
                raise EntryError(f"no test has a name like {', '.join(swift)}")
            if status != 0:
                names = re.findall(r"✘ (Suite|Test) (.+?)(?: with \d+ test cases)? failed after", output)
                names = [f"{kind} {name}" for kind, name in names]
                reason = "no result in time" if status == 124 else "the test process crashed"
                failed += list(dict.fromkeys(names)) or [reason]
        for test in python:
            command = ["env", f"COUNTERSIGN_BINARY={self.tree}/.build/debug/countersign",
                       str(ROOT / ".build/venv/bin/python"), "-B", "-m", "pytest", "-q",
                       "-p", "no:cacheprovider", test]
            status, output = self.run(command, self.seconds)
            if status not in (0, 1, 124):
                raise EntryError(f"{test}: pytest says {status}: {output[-300:]}")
            if status != 0:
                failed.append(test)
        return failed

    def judge(self, entry):
        """One of `caught`, `survived` and `error`, and the reason."""
        path = self.tree / entry["file"]
        original = path.read_text(encoding="utf-8")
        try:
            path.write_text(mutated(entry, self.tree), encoding="utf-8")
            errors = self.build()
            if errors:
                return "error", f"does not compile: {errors}"
            failed = self.test(entry["tests"])
            if failed:
                return "caught", ", ".join(failed[:4])
            return "survived", f"{', '.join(entry['tests'])}: all pass"
        except EntryError as error:
            return "error", str(error)
        finally:
            path.write_text(original, encoding="utf-8")


def arguments():
    parser = argparse.ArgumentParser(
        prog="script/mutate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("ids", nargs="*", metavar="ID", help="plant only these entries; a group's name means all of its entries")
    add("--list", action="store_true", help="print the entries and stop")
    add("--check", action="store_true", help="check that each entry applies and names tests that exist, and stop")
    add("--json", action="store_true", help="print a JSON array of the entries or results; progress goes to stderr")
    add("--sample", type=int, metavar="N", help="plant N entries, chosen at random")
    add("--seed", type=int, default=1, metavar="S", help="choose the sample by this number (%(default)s)")
    add("--tree", type=pathlib.Path, default=ROOT / ".build-mutate/tree", metavar="DIR",
        help="use this scratch copy, which the tool overwrites (.build-mutate/tree)")
    add("--seconds", type=int, default=600, metavar="N",
        help="count a test run that takes longer as failed (%(default)s)")
    given = parser.parse_args()
    if given.sample is not None and given.sample < 1:
        parser.error("--sample: expected 1 or more")
    return parser, given


def selected(parser, given):
    chosen = entries()
    if given.ids:
        known = {entry["id"] for entry in chosen} | {entry["group"] for entry in chosen}
        for name in given.ids:
            if name not in known:
                parser.error(f"there is no entry or group {name}")
        chosen = [entry for entry in chosen if entry["id"] in given.ids or entry["group"] in given.ids]
    if given.sample is not None and given.sample < len(chosen):
        kept = random.Random(given.seed).sample(range(len(chosen)), given.sample)
        chosen = [chosen[index] for index in sorted(kept)]
    return chosen


def run(chosen, given):
    """The results, one for each entry; None where the tests do not pass without a mistake."""
    tree = given.tree.resolve()
    if tree == ROOT:
        raise EntryError("--tree: the working copy itself is not a scratch copy")
    say = lambda text: print(text, file=sys.stderr if given.json else sys.stdout, flush=True)
    update(tree)
    runner = Runner(tree, given.seconds)
    say(f"mutate: builds {tree} without a mistake")
    errors = runner.build()
    if errors:
        raise EntryError(f"the sources do not compile: {errors}")
    failed = runner.test(sorted({test for entry in chosen for test in entry["tests"]}))
    if failed:
        raise EntryError(f"tests fail without a mistake: {', '.join(failed)}")
    results = []
    for number, entry in enumerate(chosen, 1):
        began = time.monotonic()
        verdict, reason = runner.judge(entry)
        took = round(time.monotonic() - began)
        results.append({"id": entry["id"], "group": entry["group"], "verdict": verdict, "reason": reason,
                        "seconds": took})
        say(f"[{number}/{len(chosen)}] {verdict}: {entry['id']}: {entry['mistake']} ({took} s; {reason})")
    return results


def main():
    parser, given = arguments()
    try:
        chosen = selected(parser, given)
        if given.list:
            if given.json:
                print(json.dumps(chosen, indent=1))
            else:
                for entry in chosen:
                    print(f"{entry['id']:40} {entry['mistake']}  [{', '.join(entry['tests'])}]")
            return 0
        wrong = check(chosen)
        for text in wrong:
            print(f"mutate: {text}", file=sys.stderr)
        if wrong:
            return 1
        if given.check:
            if not given.json:
                print(f"mutate: {len(chosen)} entries apply")
            return 0
        results = run(chosen, given)
    except (EntryError, tomllib.TOMLDecodeError) as error:
        print(f"mutate: {error}", file=sys.stderr)
        return 1
    if given.json:
        print(json.dumps(results, indent=1))
    caught, survived, errors = (
        sum(result["verdict"] == verdict for result in results) for verdict in ("caught", "survived", "error"))
    print(f"mutate: {caught} caught, {survived} survived, {errors} errors", file=sys.stderr)
    return 0 if caught == len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
