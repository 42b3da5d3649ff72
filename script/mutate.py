#!/usr/bin/env python3
"""Plants mistakes in the sources, one at a time, and demands that a test finds each.

Each mistake is a table of Tests/Mutations/*.toml, named by its id: a file, a text that occurs there exactly once, its
replacement, one line that describes the mistake, and the tests of which one must fail. The tool works in a copy
of the tracked files with a debug build of its own (.build-mutate/tree), which has only the test modules that the
selected entries name. For each mistake it replaces the text, builds, runs the named tests in their order until
one fails, and restores the file. A mistake that does not compile is an error of its entry. A crash of the test
process and a run that takes too long count as failures.

After the last mistake the tests that failed run without any, and must pass: otherwise the entries that they
caught are errors. Exit 0: all mistakes were caught; 1: a mistake survived, does not compile or does not apply;
2: the arguments are wrong.
"""
import argparse
import contextlib
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
KEYS = {"id", "file", "text", "replacement", "mistake", "tests"}


class EntryError(Exception):
    pass


def of_file(path):
    """The entries of one file, a table for each. `tests` before the first is the value of those without it."""
    with path.open("rb") as file:
        tables = tomllib.load(file)
    common = {"tests": tables.pop("tests")} if "tests" in tables else {}
    return [{"id": name} | common | table for name, table in tables.items()]


def entries():
    """All entries, by the names of their files. Each has the keys of `KEYS`, and `group`: its file's name."""
    found, names = [], set()
    for path in sorted((ROOT / "Tests/Mutations").glob("*.toml")):
        for entry in of_file(path):
            if set(entry) != KEYS:
                raise EntryError(f"{path.name}: {entry['id']}: expected the keys {', '.join(sorted(KEYS - {'id'}))}")
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


class Outcome:
    """What a run of tests shows: the tests that failed, as patterns for `--filter`, and the reason in words."""

    def __init__(self, tests, reason):
        self.tests, self.reason = tests, reason


class Events:
    """Reads the file of events that swift-testing writes while it runs."""

    def __init__(self, path):
        self.path, self.read = path, 0
        self.started, self.ended, self.failed = [], set(), []

    def update(self):
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(self.read)
            lines = file.read()
        lines = lines[:lines.rfind(b"\n") + 1]
        self.read += len(lines)
        for line in lines.splitlines():
            record = json.loads(line)
            if record["kind"] == "event":
                self.take(record["payload"])

    def take(self, event):
        # Without the test's place in its file, which --filter does not need.
        test = re.sub(r"/[^/]+\.swift:\d+:\d+$", "", event.get("testID", ""))
        is_function = test.endswith(")")
        if event["kind"] == "testStarted" and is_function:
            self.started.append(test)
        elif event["kind"] == "testEnded":
            self.ended.add(test)
        elif event["kind"] == "issueRecorded" and not event["issue"]["isKnown"]:
            # An issue outside a test, such as one of a detached task, has no name.
            self.failed.append(test or "an unnamed test")

    @property
    def unfinished(self):
        return [test for test in self.started if test not in self.ended]


class Runner:
    def __init__(self, tree, seconds, chosen):
        self.tree, self.seconds = tree, seconds
        named = {test for entry in chosen for test in entry["tests"]}
        targets = {test.partition(".")[0] for test in named if ".py" not in test}
        if len(targets) < len({test.partition(".")[0] for test in named}):
            targets |= {"CountersignMain", "countersign-lab"}
        self.environment = os.environ | {
            # Package.swift leaves out the targets that these do not need.
            "COUNTERSIGN_TESTS": ",".join(sorted(targets)),
            "SWIFT_BACKTRACE": "enable=no",
        }

    def build(self):
        """Nothing, or the compiler's errors."""
        command = ["swift", "build", "--build-tests", "-debug-info-format", "none"]
        done = subprocess.run(command, cwd=self.tree, env=self.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode == 0:
            return None
        output = done.stdout.decode(errors="replace")
        errors = [line for line in output.splitlines() if "error:" in line]
        return "\n".join(dict.fromkeys(errors[:5])) or output[-500:]

    def run(self, command, environment, log, has_failed=lambda: False):
        """The exit status; None if the run was ended because `has_failed` or took too long."""
        with log.open("wb") as output:
            process = subprocess.Popen(
                command, cwd=self.tree, env=self.environment | environment, stdin=subprocess.DEVNULL,
                stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
            end = time.monotonic() + self.seconds
            try:
                while process.poll() is None and time.monotonic() < end and not has_failed():
                    time.sleep(0.1)
                return process.poll()
            finally:
                # Ends the processes that the tests started, too.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def swift_tests(self, patterns, folder):
        """The outcome of the tests whose names begin with one of `patterns`, up to the first failure."""
        log, events = folder / "log", Events(folder / "events")
        command = [str(self.tree / ".build/debug/countersignPackageTests.xctest"),
                   "--testing-library", "swift-testing", "--event-stream-output-path", str(events.path),
                   "--event-stream-version", "0", "--filter",
                   "|".join("^" + re.escape(pattern) + r"([./]|$)" for pattern in patterns)]

        def has_failed():
            events.update()
            return events.failed

        status = self.run(command, {"TMPDIR": str(folder)}, log, has_failed)
        events.update()
        if events.failed:
            return Outcome(events.failed[:1], events.failed[0])
        if not events.started:
            raise EntryError(f"no test ran: {', '.join(patterns)}: {log.read_text(errors='replace')[-300:]}")
        if status == 0:
            return Outcome([], f"{', '.join(patterns)} pass")
        what = "no result in time" if status is None else f"the test process ended with {status}"
        return Outcome(events.unfinished or list(patterns), f"{what}: {', '.join(events.unfinished[:3])}")

    def black_box_test(self, batch, folder):
        test, log = batch[0], folder / "log"
        command = [str(ROOT / ".build/venv/bin/python"), "-B", "-m", "pytest", "-q", "-x",
                   "-p", "no:cacheprovider", test]
        binary = str(self.tree / ".build/debug/countersign")
        status = self.run(
            command, {"COUNTERSIGN_BINARY": binary, "COUNTERSIGN_BREAKABLE": f"{binary}-breakable"}, log)
        if status not in (0, 1, None):
            raise EntryError(f"{test}: pytest ended with {status}: {log.read_text(errors='replace')[-300:]}")
        return Outcome([test] if status != 0 else [], f"{test} {'fails' if status != 0 else 'passes'}")

    def test(self, batches):
        """The outcome of the tests, one batch after the other up to the first failure."""
        for batch in batches:
            with tempfile.TemporaryDirectory(prefix="mutate-", ignore_cleanup_errors=True) as folder:
                run = self.black_box_test if ".py" in batch[0] else self.swift_tests
                outcome = run(batch, pathlib.Path(folder))
            if outcome.tests:
                return outcome
        return Outcome([], f"{', '.join(test for batch in batches for test in batch)}: all pass")

    def judge(self, entry):
        """One of `caught`, `survived` and `error`, and the outcome of the tests."""
        path = self.tree / entry["file"]
        original = path.read_text(encoding="utf-8")
        try:
            path.write_text(mutated(entry, self.tree), encoding="utf-8")
            errors = self.build()
            if errors:
                return "error", Outcome([], f"does not compile: {errors}")
            outcome = self.test([[test] for test in entry["tests"]])
            return "caught" if outcome.tests else "survived", outcome
        except EntryError as error:
            return "error", Outcome([], str(error))
        finally:
            path.write_text(original, encoding="utf-8")

    def confirm(self, tests):
        """Those of the tests that fail without a mistake."""
        errors = self.build()
        if errors:
            raise EntryError(f"the sources no longer compile: {errors}")
        failing, left = set(), set(tests)
        while left:
            swift = sorted(test for test in left if ".py" not in test)
            batches = ([swift] if swift else []) + [[test] for test in sorted(left) if ".py" in test]
            outcome = self.test(batches)
            if not outcome.tests:
                break
            if left.isdisjoint(outcome.tests):
                raise EntryError(f"without a mistake: {outcome.reason}")
            failing |= left & set(outcome.tests)
            left -= failing
        return failing


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
    """The results, one for each entry."""
    tree = given.tree.resolve()
    if tree == ROOT:
        raise EntryError("--tree: the working copy itself is not a scratch copy")
    say = lambda text: print(text, file=sys.stderr if given.json else sys.stdout, flush=True)
    update(tree)
    runner = Runner(tree, given.seconds, chosen)
    say(f"mutate: builds {tree} without a mistake")
    began = time.monotonic()
    errors = runner.build()
    if errors:
        raise EntryError(f"the sources do not compile: {errors}")
    say(f"mutate: built in {time.monotonic() - began:.0f} s")
    results, caught_by = [], {}
    for number, entry in enumerate(chosen, 1):
        began = time.monotonic()
        verdict, outcome = runner.judge(entry)
        took = round(time.monotonic() - began)
        result = {"id": entry["id"], "group": entry["group"], "verdict": verdict, "reason": outcome.reason,
                  "seconds": took}
        results.append(result)
        for test in outcome.tests:
            caught_by.setdefault(test, []).append(result)
        say(f"[{number}/{len(chosen)}] {verdict}: {entry['id']}: {entry['mistake']} ({took} s; {outcome.reason})")
    for test in runner.confirm(sorted(caught_by)):
        for result in caught_by[test]:
            result |= {"verdict": "error", "reason": f"fails without a mistake, too: {test}"}
            say(f"error: {result['id']}: {result['reason']}")
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
