#!/usr/bin/env python3
"""Runs the long tests, and keeps a record of each in .ci/full.json.

script/full               run every step that is stale or red, in the order of script/full.toml
script/full STEP…         run these steps (a pattern such as 'mutate-*' names several)

Each record is written as soon as its step ends, so an interrupted run continues where it stopped. Commit the
records. A step is stale if a source of the targets that it builds or runs (by the dependencies in Package.swift),
its scripts or its data have changed since the commit of its record, or if this clone does not have that commit.
A step runs on committed sources only, unless --no-record is given. Its output is in .build/full/STEP.log. A red
step lists the commits since its last green record.

The speed in a record is that of the machine: the seconds that the compiler takes for one fixed file, 1.0 on a
quiet machine of two cores. script/budget.txt has the expected seconds of each step at speed 1.0. A step that
took half as much again is listed at the end; no step fails because of its duration.

Exit 0: all steps are green; 1: a step is red, or a check failed; 2: the arguments or the sources do not allow it.
"""
import argparse
import concurrent.futures
import dataclasses
import datetime
import fcntl
import fnmatch
import hashlib
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
import xml.etree.ElementTree as ET

import mutate

KINDS = {"commit": str, "date": str, "seconds": int, "speed": float, "counts": dict, "seed": (int, type(None)),
         "verdict": str, "command": str, "green": (str, type(None)), "tail": list}
COMMIT = re.compile(r"[0-9a-f]{40}")
LATE_DAYS = 7
# The wall time of `speed`'s job on a quiet machine of two cores.
REFERENCE_SECONDS = 1.5


class UsageError(Exception):
    pass


@dataclasses.dataclass(frozen=True)
class Scope:
    """Files by folders, names or patterns, in which `*` matches any characters; of each, some are left out."""
    parts: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @staticmethod
    def of(patterns):
        return Scope(tuple((pattern, ()) for pattern in patterns))

    def __add__(self, other):
        return Scope(self.parts + other.parts)

    def __contains__(self, path):
        return any(matches(path, pattern) and not any(matches(path, out) for out in without)
                   for pattern, without in self.parts)

    @property
    def patterns(self):
        return sorted({pattern for pattern, _ in self.parts})


def matches(path, pattern):
    return path == pattern or path.startswith(pattern + "/") or "*" in pattern and fnmatch.fnmatchcase(path, pattern)


class Package:
    """The targets of Package.swift and what they depend on."""

    def __init__(self, root):
        self.targets = {target["name"]: target for target in self.manifest(root)["targets"]}

    @staticmethod
    def manifest(root):
        """SwiftPM's own reading of the manifest, kept by the manifest's hash: it takes a second."""
        text = (root / "Package.swift").read_bytes()
        kept = root / f".build/full/manifest-{hashlib.sha256(text).hexdigest()[:16]}.json"
        if not kept.exists():
            environment = os.environ | {f"COUNTERSIGN_{name}": "1" for name in ("FUZZ", "TIMING", "MODEL")}
            environment.pop("COUNTERSIGN_TESTS", None)
            kept.parent.mkdir(parents=True, exist_ok=True)
            # A copy in a folder of its own: in the package's folder SwiftPM waits for a build to end.
            with tempfile.TemporaryDirectory() as folder:
                pathlib.Path(folder, "Package.swift").write_bytes(text)
                done = subprocess.run(["swift", "package", "--package-path", folder, "dump-package"], env=environment,
                                      capture_output=True, check=False)
            if done.returncode:
                raise UsageError(f"swift package dump-package: {done.stderr.decode(errors='replace')[-500:]}")
            for former in kept.parent.glob("manifest-*.json"):
                former.unlink(missing_ok=True)
            kept.write_bytes(done.stdout)
        return json.loads(kept.read_bytes())

    def closure(self, names):
        """The targets and everything that they depend on."""
        found, left = set(), list(names)
        while left:
            name = left.pop()
            if name in found or name not in self.targets:
                continue
            found.add(name)
            for dependency in self.targets[name]["dependencies"]:
                if value := dependency.get("byName") or dependency.get("target"):
                    left.append(value[0])
        return found

    def tests(self, paths):
        """The test targets of these files: of each, that of its module, or else the one with the fewest dependencies."""
        kinds = {name: self.closure([name]) for name, target in self.targets.items() if target["type"] == "test"}
        found = set()
        for name in self.targets:
            if any(path in self.scope([name], is_closure=False) for path in paths):
                own = name if name in kinds else f"{pathlib.PurePath(self.targets[name].get('path') or name).name}Tests"
                using = sorted((len(closure), test) for test, closure in kinds.items() if name in closure)
                found |= {own} if own in kinds else {test for _, test in using[:1]}
        return sorted(found)

    def scope(self, names, is_closure=True):
        parts = []
        for name in sorted(self.closure(names) if is_closure else names):
            target = self.targets[name]
            folder = target.get("path") or f"{'Tests' if target['type'] == 'test' else 'Sources'}/{name}"
            without = tuple(f"{folder}/{path}" for path in target.get("exclude") or [])
            parts += [(f"{folder}/{path}" if path else folder, without) for path in target.get("sources") or [""]]
        return Scope(tuple(parts))


@dataclasses.dataclass
class Step:
    name: str
    command: str
    builds: list[str] = dataclasses.field(default_factory=list)
    paths: list[str] = dataclasses.field(default_factory=list)
    env: dict[str, str] = dataclasses.field(default_factory=dict)
    # The JUnit file that the command writes, or a pattern with the groups passed, failed and skipped.
    junit: str = ""
    counts: str = ""
    # The smallest form and the planted failure that it recognizes, or why there is none.
    smoke: str = ""
    planted: str = ""
    no_smoke: str = ""
    # What asks for the step in CI, and the form that runs there if it is shorter.
    trigger: dict = dataclasses.field(default_factory=dict)
    changed: str = ""
    scope: Scope = Scope()
    trigger_scope: Scope = Scope()

    @property
    def is_seeded(self):
        return "{seed}" in self.command


class Table:
    """The steps of script/full.toml, with the files that each depends on."""

    def __init__(self, root, package=None):
        self.root = root
        with (root / "script/full.toml").open("rb") as file:
            table = tomllib.load(file)
        self.package = package or Package(root)
        self.groups, self.elsewhere = table.get("groups", {}), Scope.of(table.get("elsewhere", {}))
        self.steps, self.problems = [], []
        for row in table["step"]:
            self.steps += self.expanded(row)
        for step in self.steps:
            step.scope = self.scope(step, step.builds, step.paths)
            step.trigger_scope = self.scope(step, step.trigger.get("builds", []), step.trigger.get("paths", []))

    def expanded(self, row):
        """One step, or with `each` one for every file of Tests/Mutations."""
        row = dict(row)
        each = row.pop("each", None)
        if not each:
            return [Step(**row)]
        return [self.mutations(row, path) for path in sorted(self.root.glob(each))]

    def mutations(self, row, path):
        named = {key: value.replace("{stem}", path.stem) if isinstance(value, str) else value
                 for key, value in row.items()}
        step = Step(**named | {"builds": list(row.get("builds", [])), "paths": list(row.get("paths", []))})
        step.paths.append(str(path.relative_to(self.root)))
        for entry in mutate.of_file(path):
            step.paths.append(entry["file"])
            for test in entry["tests"]:
                if ".py" in test:
                    step.builds.append("gateway")
                    step.paths += [test.partition("::")[0], "Tests/Support", "Tests/conftest.py"]
                else:
                    step.builds.append(test.partition(".")[0])
        step.builds, step.paths = sorted(set(step.builds)), sorted(set(step.paths))
        return step

    def scope(self, step, builds, paths):
        names = [name for word in builds for name in self.groups.get(word, [word])]
        targets = []
        for name in names:
            found = fnmatch.filter(self.package.targets, name)
            if not found:
                self.problems.append(f"{step.name}: Package.swift has no target {name}")
            targets += found
        # A changed manifest may change how any target is built.
        manifest = Scope.of(["Package.swift"]) if targets and builds is step.builds else Scope()
        return self.package.scope(targets) + Scope.of(paths) + manifest

    def select(self, words):
        chosen = set()
        for word in words:
            found = fnmatch.filter([step.name for step in self.steps], word)
            if not found:
                raise UsageError(f"there is no step {word}; script/full --list names them")
            chosen |= set(found)
        return [step for step in self.steps if step.name in chosen]

    def budgets(self):
        rows = {}
        for line in (self.root / "script/budget.txt").read_text().splitlines():
            words = line.partition("#")[0].split()
            if words:
                rows[words[0]] = int(words[1])
        return rows


class Repository:
    def __init__(self, root):
        self.root, self.kept = root, {}

    def git(self, *arguments, check=True):
        done = subprocess.run(["git", *arguments], cwd=self.root, capture_output=True, check=False)
        if done.returncode and check:
            raise UsageError(f"git {arguments[0]}: {done.stderr.decode(errors='replace').strip()}")
        return done.stdout.decode(errors="replace") if not done.returncode else None

    @property
    def head(self):
        return self.git("rev-parse", "HEAD").strip()

    def files(self, *arguments):
        return {name for name in self.git(*arguments, "-z").split("\0") if name}

    def has(self, commit):
        return bool(commit) and self.git("cat-file", "-e", f"{commit}^{{commit}}", check=False) is not None

    def changed(self, commit):
        """The files that differ between the commit and the working copy."""
        if commit not in self.kept:
            untracked = self.files("ls-files", "--others", "--exclude-standard")
            self.kept[commit] = self.files("diff", "--name-only", "--no-renames", commit) | untracked
        return self.kept[commit]

    def log(self, commit, scope):
        """The commits since then that changed these files, the latest first, as lines."""
        return self.git("log", "--oneline", f"{commit}..HEAD", "--", *scope.patterns).splitlines()

    def first_change(self, commit, scope):
        times = self.git("log", "--format=%ct", f"{commit}..HEAD", "--", *scope.patterns).split()
        return int(times[-1]) if times else None

    def holds(self, path, commit, text):
        """Whether the file has the text, now or at the commit."""
        now = self.root / path
        contents = [now.read_text(errors="replace") if now.is_file() else "",
                    self.git("show", f"{commit}:{path}", check=False) or ""]
        return any(re.search(text, content) for content in contents)


class Records:
    def __init__(self, root):
        self.path, self.lock = root / ".ci/full.json", root / ".build/full/lock"

    def all(self):
        if not self.path.exists():
            return {}
        try:
            return json.loads(self.path.read_text())
        except json.JSONDecodeError as error:
            raise UsageError(f".ci/full.json: {error}") from error

    def put(self, name, record):
        """Adds one record; two runs at once keep both of theirs. A line for each step, so that merges are simple."""
        self.path.parent.mkdir(exist_ok=True)
        with self.lock.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            found = self.all() | {name: record}
            rows = ",\n".join(f"{json.dumps(key)}: {json.dumps(found[key], ensure_ascii=False)}" for key in sorted(found))
            new = self.path.with_suffix(".new")
            new.write_text("{\n" + rows + "\n}\n")
            new.replace(self.path)


def why_stale(step, record, repository):
    """Why the record says nothing about the present sources; None if it does."""
    if record is None:
        return "it has no record"
    if not repository.has(record["commit"]):
        return f"this clone does not have commit {record['commit'][:8]}"
    if record["command"] != step.command:
        return "its command has changed"
    return listed([path for path in repository.changed(record["commit"]) if path in step.scope], record["commit"])


def listed(paths, commit):
    if not paths:
        return None
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"{min(paths)}{more} changed since {commit[:8]}"


def why_changed(step, record, repository):
    """Whether CI must run the step because of changed files, why or why not, and the files; none if all count."""
    if record is None or not record["green"]:
        return True, "it has no green record", []
    if record["verdict"] == "red":
        return True, "its last record is red", []
    green, text = record["green"], step.trigger.get("text")
    if not repository.has(green):
        return True, f"this clone does not have commit {green[:8]}", []
    paths = [path for path in repository.changed(green) if path in step.trigger_scope]
    if text:
        paths = [path for path in paths if repository.holds(path, green, text)]
    reason = listed(paths, green)
    return bool(reason), reason or f"nothing that asks for it changed since {green[:8]}", paths


SPEED_JOB = "\n".join(
    f"struct S{n}<T: Comparable> {{ var items: [T] = []; mutating func add(_ item: T) {{ items.append(item); "
    f"items.sort() }} }}\nfunc f{n}(_ n: Int) -> Int {{ var s = S{n}<Int>(); for i in 0..<n {{ s.add(i &* {n}) }}; "
    f"return s.items.map {{ $0 &+ {n} }}.filter {{ $0 % 2 == 0 }}.reduce(0, &+) }}" for n in range(10))


def speed():
    """The speed of this machine, 1.0 where the fixed job takes `REFERENCE_SECONDS`. An optimized compilation is
    what most steps consist of, uses the caches and the disk as they do, and slows down with the machine's load."""
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "speed.swift")
        source.write_text(SPEED_JOB)
        times = []
        for _ in range(2):
            began = time.monotonic()
            subprocess.run(["swiftc", "-O", "-parse-as-library", "-c", "-o", f"{folder}/speed.o", source], check=True)
            times.append(time.monotonic() - began)
    return round(REFERENCE_SECONDS / min(times), 2)


def counts(step, root, log):
    """The tests that passed, failed and were skipped, where the step says so."""
    if step.counts:
        found = list(re.finditer(step.counts, log))
        return {key: int(value) for key, value in found[-1].groupdict().items() if value} if found else {}
    if not step.junit:
        return {}
    try:
        cases = list(ET.parse(root / step.junit).iter("testcase"))
    except (FileNotFoundError, ET.ParseError):
        return {"passed": 0, "failed": 0, "skipped": 0}
    failed = sum(case.find("failure") is not None or case.find("error") is not None for case in cases)
    skipped = sum(case.find("skipped") is not None for case in cases)
    return {"passed": len(cases) - failed - skipped, "failed": failed, "skipped": skipped}


def shell(command, root, env, log):
    """The exit status of a command, which has a process group of its own, so that an interrupt ends all of it."""
    with log.open("wb") as output:
        env = {key: value.replace("{root}", str(root)) for key, value in env.items()}
        process = subprocess.Popen(["sh", "-c", command], cwd=root, env=os.environ | env, stdin=subprocess.DEVNULL,
                                   stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            return process.wait()
        except BaseException:
            for sign, patience in ((signal.SIGTERM, 10), (signal.SIGKILL, None)):
                try:
                    os.killpg(process.pid, sign)
                    process.wait(patience)
                except (ProcessLookupError, subprocess.TimeoutExpired):
                    continue
            raise


class Run:
    """Runs steps one after the other and records each."""

    def __init__(self, root, table, say=print, now=lambda: datetime.datetime.now(datetime.timezone.utc)):
        self.root, self.table, self.say, self.now = root, table, say, now
        self.repository, self.records = Repository(root), Records(root)
        self.folder = root / ".build/full"
        self.folder.mkdir(parents=True, exist_ok=True)

    def dirty(self, step):
        """Files of the step that differ from the last commit."""
        return sorted(path for path in Repository(self.root).changed("HEAD") if path in step.scope)

    def tail(self, log, count):
        """The last lines of a log, without the names of this machine's folders."""
        text = log.read_text(errors="replace").replace(str(self.root), ".").replace(str(pathlib.Path.home()), "~")
        return [line[:200] for line in text.splitlines()[-count:]]

    def measured(self, step, command, seed):
        """One run of the step: its verdict, seconds, counts and log."""
        log = self.folder / f"{step.name}.log"
        if step.junit:
            (self.root / step.junit).unlink(missing_ok=True)
        began = time.monotonic()
        status = shell(command.replace("{seed}", str(seed)), self.root, step.env, log)
        seconds = round(time.monotonic() - began)
        numbers = counts(step, self.root, log.read_text(errors="replace"))
        # A step whose tests were not found has shown nothing.
        is_green = status == 0 and not numbers.get("failed") and numbers.get("passed", 1) > 0
        sums = ", ".join(f"{value} {key}" for key, value in numbers.items())
        self.say(f"{step.name}: {'green' if is_green else 'red'}: exit {status} after {seconds} s{sums and ', ' + sums}")
        if not is_green:
            self.say("\n".join(self.tail(log, 60)))
        return is_green, seconds, numbers, log

    def step(self, step, speed, seed, is_recorded):
        """Whether the step is green."""
        commit = self.repository.head
        seed = (random.randrange(1 << 31) if seed is None else seed) if step.is_seeded else None
        self.say(f"\n== {step.name}{f', seed {seed}' if seed is not None else ''}")
        former = self.records.all().get(step.name) or {}
        is_green, seconds, numbers, log = self.measured(step, step.command, seed)
        green = commit if is_green else former.get("green")
        if not is_green and green and self.repository.has(green):
            self.say(f"{step.name}: the commits since {green[:8]}, the last green one:")
            self.say("\n".join(self.repository.log(green, step.scope)) or "none that changed its files")
        if not is_recorded:
            return is_green
        # Another repository object: this one remembers what it saw before.
        if late := [path for path in Repository(self.root).changed(commit) if path in step.scope]:
            self.say(f"{step.name}: not recorded: {min(late)} changed while it ran")
            return False
        record = {"commit": commit, "date": self.now().strftime("%Y-%m-%dT%H:%M:%SZ"), "seconds": seconds, "speed": speed,
                  "counts": numbers, "seed": seed, "verdict": "green" if is_green else "red", "command": step.command,
                  "green": green}
        self.records.put(step.name, record if is_green else record | {"tail": self.tail(log, 15)})
        return is_green

    def all(self, steps, seed=None, is_recorded=True):
        """The exit status of running the steps."""
        if is_recorded:
            for step in steps:
                if dirty := self.dirty(step):
                    raise UsageError(f"{step.name}: {', '.join(dirty[:5])} not committed, so its result could not be recorded; "
                                     "commit, or use --no-record")
        if not steps:
            self.say("full: every step is green")
            return 0
        rate = speed()
        self.say(f"full: {len(steps)} steps at speed {rate}")
        red = [step.name for step in steps if not self.step(step, rate, seed, is_recorded)]
        for line in outgrown(self.table, self.records.all(), rate):
            self.say(f"full: {line}")
        self.say(f"full: {len(steps) - len(red)} green, {len(red)} red{': ' if red else ''}{', '.join(red)}")
        return 1 if red else 0

    def changed(self):
        """Runs what changed files ask for. Records nothing: CI cannot commit, and its forms may be shorter."""
        records, red = self.records.all(), []
        for step in self.table.steps:
            if not step.trigger:
                continue
            runs, why, paths = why_changed(step, records.get(step.name), self.repository)
            self.say(f"full: {step.name}: {'runs' if runs else 'does not run'}: {why}")
            if runs:
                seed = random.randrange(1 << 31) if step.is_seeded else None
                tests = ",".join(self.table.package.tests(paths))
                command = step.changed.replace("{tests}", tests)
                # Without files to choose by, all of it.
                if not command or "{tests}" in step.changed and not tests:
                    command = step.command
                is_green = self.measured(step, command, seed)[0]
                red += [] if is_green else [step.name]
        self.say(f"full: {len(red)} red{': ' if red else ''}{', '.join(red)}")
        return 1 if red else 0

    def smoke(self, words):
        """Runs the smallest form of each step, and the planted failure that it must recognize, two at a time."""
        steps = self.table.select(words) if words else self.table.steps
        # Several steps may have one form.
        forms = {(step.smoke, step.planted): step for step in reversed(steps) if step.smoke}
        began, red = time.monotonic(), []
        with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
            for step, text in pool.map(self.smoke_of, reversed(forms.values())):
                self.say(text)
                red += [step.name] if ": green" not in text.splitlines()[0] else []
        for step in steps:
            if step.no_smoke:
                self.say(f"{step.name}: no smoke: {step.no_smoke}")
        self.say(f"full: smoke: {len(forms) - len(red)} green, {len(red)} red after {time.monotonic() - began:.0f} s")
        return 1 if red else 0

    def smoke_of(self, step):
        began, lines = time.monotonic(), []
        with tempfile.TemporaryDirectory(prefix="full-", ignore_cleanup_errors=True) as folder:
            log = self.folder / f"smoke-{step.name}.log"
            for what, command in (("its smallest form", step.smoke), ("a planted failure", step.planted)):
                if shell(f". script/smoke\n{command}", self.root, step.env | {"SMOKE": folder}, log):
                    lines = [f"{step.name}: red: {what}: {command}", *self.tail(log, 20)]
                    break
        return step, "\n".join(lines) or f"{step.name}: green after {time.monotonic() - began:.1f} s"

    def rows(self):
        records, today = self.records.all(), self.now()
        for step in self.table.steps:
            record = records.get(step.name)
            why, age = why_stale(step, record, self.repository), None
            if record:
                age = round((today - moment(record["date"])).total_seconds() / 86_400, 1)
            kept = {key: record[key] if record else None for key in ("verdict", "commit", "date", "seconds", "counts", "seed")}
            yield step, kept | {"step": step.name, "age_days": age, "stale": why is not None, "why": why}

    def due(self, with_red=True):
        return [step for step, row in self.rows() if row["stale"] or with_red and row["verdict"] == "red"]


def moment(text):
    return datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S%z")


def outgrown(table, records, rate):
    """A line for each step that took half as much again as its budget at that machine's speed: of the records, and of
    what script/test and script/check did last in this folder."""
    budgets, took = table.budgets(), {name: (record["seconds"], record["speed"]) for name, record in records.items()}
    for path in sorted(table.root.glob(".build/*/durations")):
        for name, seconds in re.findall(r"^(\S+): exit \d+ after (\d+) s", path.read_text(), re.MULTILINE):
            took[f"ci/{name}"] = (int(seconds), rate)
    for name, (seconds, pace) in sorted(took.items()):
        expected = budgets.get(name, 0) / pace
        if expected and seconds > 1.5 * expected:
            yield f"{name}: took {seconds} s; its budget at speed {pace} is {expected:.0f} s"


def malformed(name, record):
    """What is wrong with the form of a record; None if nothing is."""
    if not isinstance(record, dict):
        return f"{name}: not an object"
    wanted = set(KINDS) - (set() if record.get("verdict") == "red" else {"tail"})
    if set(record) != wanted:
        return f"{name}: expected the members {', '.join(sorted(wanted))}"
    for key, kind in KINDS.items():
        if key in record and (not isinstance(record[key], kind) or isinstance(record[key], bool)):
            return f"{name}: {key}: {record[key]!r} has the wrong type"
    if record["verdict"] not in ("green", "red"):
        return f"{name}: the verdict is neither green nor red"
    if not all(COMMIT.fullmatch(commit) for commit in (record["commit"], record["green"] or record["commit"])):
        return f"{name}: a commit is not 40 hexadecimal digits"
    if record["speed"] <= 0 or record["seconds"] < 0:
        return f"{name}: a speed or duration out of range"
    try:
        moment(record["date"])
    except ValueError:
        return f"{name}: {record['date']!r} is not a time such as 2030-01-31T12:00:00Z"
    return None


def check(run):
    """Errors and warnings about the table and the records, for script/lint."""
    table, repository = run.table, run.repository
    records, names = run.records.all(), [step.name for step in table.steps]
    errors, warnings, files = list(table.problems), [], repository.files("ls-files", "--cached", "--others", "--exclude-standard")
    errors += [f"the step {name} is there twice" for name in sorted({name for name in names if names.count(name) > 1})]
    for step in table.steps:
        if bool(step.smoke and step.planted) == bool(step.no_smoke):
            errors.append(f"{step.name}: expected either smoke and planted, or no_smoke")
        if step.changed and not step.trigger:
            errors.append(f"{step.name}: changed without trigger")
        errors += [f"{step.name}: no file is {pattern}" for pattern in [*step.paths, *step.trigger.get("paths", [])]
                   if not any(matches(path, pattern) for path in files)]
    errors += [f".ci/full.json: {name}: there is no such step" for name in records if name not in names]
    bad = {name: text for name, record in records.items() if (text := malformed(name, record))}
    errors += [f".ci/full.json: {text}" for text in bad.values()]
    budgets = table.budgets()
    errors += [f"script/budget.txt: no row for {name}" for name in names if name not in budgets]
    errors += [f"script/budget.txt: {name}: there is no such step" for name in budgets
               if name not in names and not name.startswith("ci/")]
    everything = table.elsewhere
    for step in table.steps:
        everything += step.scope
    errors += [f"{path} belongs to no step; see docs/decisions/0097-long-tests.md"
               for path in sorted(files) if path.endswith(".swift") and path not in everything]
    absent = [name for name in names if name not in records]
    if absent:
        warnings.append(f"no record: {', '.join(absent)}")
    for step in table.steps:
        record = records.get(step.name)
        if record is None or step.name in bad or not (why := why_stale(step, record, repository)):
            continue
        since = moment(record["date"]).timestamp()
        if repository.has(record["commit"]):
            since = repository.first_change(record["commit"], step.scope) or run.now().timestamp()
        days = (run.now().timestamp() - since) / 86_400
        if days > LATE_DAYS:
            warnings.append(f"{step.name} has been stale for {days:.0f} days: {why}")
    return errors, warnings


def arguments(words):
    parser = argparse.ArgumentParser(
        prog="script/full", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("steps", nargs="*", metavar="STEP", help="run these, whether they are stale or not")
    mode = parser.add_mutually_exclusive_group()
    for name, meaning in (
            ("stale", "run the steps that are stale, and not those that are red"),
            ("list", "print each step with its record, and whether and why it is stale"),
            ("smoke", "run the smallest form of each step, which must work and must recognize a planted failure; "
                      "uses the programs of .build/debug, and builds none of them"),
            ("changed", "run the steps that changed files ask for, as in CI; prints why each of them runs or not"),
            ("check", "check the table, the records and that each Swift file belongs to a step, as in script/lint"),
            ("release", "exit 1 unless every step is green and not stale, as in script/package --release")):
        mode.add_argument(f"--{name}", action="store_true", help=meaning)
    parser.add_argument("--json", action="store_true", help="with --list, print a JSON array")
    parser.add_argument("--no-record", action="store_true", help="record nothing; also on uncommitted sources")
    parser.add_argument("--seed", type=int, metavar="N", help="the seed of steps that draw at random (another each time)")
    given = parser.parse_args(words)
    if given.steps and (given.stale or given.changed or given.check or given.release):
        parser.error("STEP: only without an option that chooses the steps")
    if given.json and not given.list:
        parser.error("--json: only with --list")
    return given


def show(run, given):
    rows = [row for step, row in run.rows() if not given.steps or step in run.table.select(given.steps)]
    if given.json:
        print(json.dumps(rows, indent=1))
        return
    for row in rows:
        took = "" if row["seconds"] is None else f"{row['seconds']} s"
        age = "" if row["age_days"] is None else f"{row['age_days']} d"
        print(f"{row['step']:18} {row['verdict'] or '-':6} {(row['commit'] or '-')[:8]:9} {(row['date'] or '-')[:10]:11}"
              f"{age:>8} {took:>8}  {'stale: ' + row['why'] if row['stale'] else ''}".rstrip())


def main(root, words):
    given = arguments(words)
    run = Run(root, Table(root), say=lambda text: print(text, flush=True))
    if given.check:
        errors, warnings = check(run)
        for text in warnings:
            print(f"full: warning: {text}", file=sys.stderr)
        for text in errors:
            print(f"full: {text}", file=sys.stderr)
        return 1 if errors else 0
    if run.table.problems:
        raise UsageError("; ".join(run.table.problems))
    if given.list:
        show(run, given)
        return 0
    if given.release:
        due = [f"{step.name}: {row['why'] or 'red'}" for step, row in run.rows() if row["stale"] or row["verdict"] == "red"]
        print("\n".join(due), file=sys.stderr)
        return 1 if due else 0
    if given.smoke:
        return run.smoke(given.steps)
    if given.changed:
        return run.changed()
    steps = run.table.select(given.steps) if given.steps else run.due(with_red=not given.stale)
    return run.all(steps, given.seed, not given.no_record)


def interrupted(number, _):
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, interrupted)
    try:
        sys.exit(main(pathlib.Path(__file__).resolve().parent.parent, sys.argv[1:]))
    except UsageError as problem:
        print(f"full: {problem}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("full: interrupted; the steps that ended are recorded", file=sys.stderr)
        sys.exit(130)
