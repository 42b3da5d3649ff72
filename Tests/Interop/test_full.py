"""script/full runs a long test whose record says nothing about the present sources, and records what it found: in a
repository of three modules, of which B depends on A and C on nothing."""

import datetime
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from products import ROOT

sys.path.insert(0, str(ROOT / "script"))
import full  # noqa: E402

NOW = datetime.datetime(2030, 1, 31, 12, tzinfo=datetime.timezone.utc)
TABLE = """
[groups]
all = ["A", "B", "C"]
[elsewhere]
"Snippets" = "compiled elsewhere"
[[step]]
name = "a"
command = "echo a {seed} >>.build/ran; echo 3 passed; ! cat .build/bad"
builds = ["A"]
paths = ["script/a", "data*.json"]
counts = '(?P<passed>\\d+) passed'
smoke = "true"
planted = "fails planted sh -c 'echo planted; exit 1'"
[[step]]
name = "b"
command = "echo b >>.build/ran"
builds = ["B"]
no_smoke = "none"
changed = "echo b of {tests} >>.build/ran"
[step.trigger]
builds = ["B"]
text = '[Uu]nsafe'
[[step]]
name = "c"
command = "echo c >>.build/ran"
builds = ["C"]
no_smoke = "none"
[step.trigger]
paths = ["Sources/C"]
[[step]]
name = "mutate-{stem}"
each = "Tests/Mutations/*.toml"
command = "echo mutate {stem} >>.build/ran"
no_smoke = "none"
"""
MUTATION = """
[m]
file = "Sources/C/c.swift"
text = "1"
replacement = "2"
mistake = "m"
tests = ["ATests.Suite"]
"""
TARGETS = [("A", [], "regular"), ("B", ["A"], "regular"), ("C", [], "regular"), ("ATests", ["A"], "test")]


class Project:
    """A repository with a table of steps, in which no compiler runs."""

    def __init__(self, root):
        self.root, self.said = root, []

    def made(self):
        self.git("init", "-q")
        self.write("script/full.toml", TABLE)
        self.write("script/budget.txt", "a 100\nb 100 # a comment\nc 100\nmutate-one 100\nci/unit 100\n")
        self.write("script/smoke", (ROOT / "script/smoke").read_text())
        self.write("script/a", "")
        self.write("data1.json", "")
        self.write(".gitignore", ".build\n")
        self.write("Snippets/s.swift", "")
        self.write("Tests/Mutations/one.toml", MUTATION)
        for name, _, kind in TARGETS:
            self.write(f"{'Tests' if kind == 'test' else 'Sources'}/{name}/{name.lower()}.swift", "let x = 1\n")
        self.write("Sources/A/left-out.txt", "")
        self.manifest("// the manifest\n")
        self.commit("First")
        return self

    def manifest(self, text):
        """Writes Package.swift, and what SwiftPM would say of it."""
        self.write("Package.swift", text)
        targets = [{"name": name, "type": kind, "dependencies": [{"byName": [other, None]} for other in others],
                    "exclude": ["left-out.txt"], "path": f"{'Tests' if kind == 'test' else 'Sources'}/{name}"}
                   for name, others, kind in TARGETS]
        name = hashlib.sha256(text.encode()).hexdigest()[:16]
        self.write(f".build/full/manifest-{name}.json", json.dumps({"targets": targets}))

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def git(self, *words, date="2030-01-31T12:00:00Z"):
        self.root.mkdir(exist_ok=True)
        environment = os.environ | {"GIT_COMMITTER_DATE": date, "GIT_AUTHOR_DATE": date}
        command = ["git", "-c", "user.name=n", "-c", "user.email=n@example.com", *words]
        return subprocess.run(command, cwd=self.root, env=environment, capture_output=True, text=True, check=True).stdout

    def commit(self, subject, **options):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", subject, **options)
        return self.git("rev-parse", "HEAD").strip()

    def run(self):
        """A run as of a process of its own."""
        return full.Run(self.root, full.Table(self.root), say=self.said.append, now=lambda: NOW)

    def all(self, *words, **options):
        run = self.run()
        return run.all(run.table.select(words) if words else run.due(), **options)

    def stale(self):
        return {step.name for step, row in self.run().rows() if row["stale"]}

    @property
    def records(self):
        return json.loads((self.root / ".ci/full.json").read_text())

    def alter(self, name, **members):
        self.write(".ci/full.json", json.dumps(self.records | {name: self.records[name] | members}))

    @property
    def ran(self):
        """What ran since the last look."""
        path = self.root / ".build/ran"
        found = [line.split()[0] for line in path.read_text().splitlines()] if path.exists() else []
        path.unlink(missing_ok=True)
        return found


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A project without records, and one with a green record of each step: the tests have copies."""
    folder = tmp_path_factory.mktemp("models")
    Project(folder / "new").made()
    shutil.copytree(folder / "new", folder / "green")
    project = Project(folder / "green")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(full, "speed", lambda: 1.0)
        assert project.all() == 0 and project.ran == ["a", "b", "c", "mutate"]
        assert project.stale() == set() and project.all() == 0 and project.ran == []
    return folder


@pytest.fixture
def project(models, tmp_path, monkeypatch):
    monkeypatch.setattr(full, "speed", lambda: 1.0)
    return Project(shutil.copytree(models / "new", tmp_path / "project"))


@pytest.fixture
def green(models, tmp_path, monkeypatch):
    monkeypatch.setattr(full, "speed", lambda: 1.0)
    return Project(shutil.copytree(models / "green", tmp_path / "project"))


@pytest.mark.parametrize("path, stale", [
    ("Sources/A/a.swift", {"a", "b", "mutate-one"}), ("Sources/A/new.swift", {"a", "b", "mutate-one"}),
    ("Sources/B/b.swift", {"b"}), ("Sources/C/c.swift", {"c", "mutate-one"}),
    ("Tests/ATests/atests.swift", {"mutate-one"}), ("Sources/A/left-out.txt", set()), ("script/a", {"a"}),
    ("data2.json", {"a"}), ("Tests/Mutations/one.toml", {"mutate-one"}), ("README.md", set()), ("Sources/AB/a.swift", set()),
])
def test_a_changed_source_makes_stale_what_is_built_of_it(green, path, stale):
    green.write(path, MUTATION + "# changed\n" if path.endswith(".toml") else "let y = 2\n")
    assert green.stale() == stale
    green.commit("Change")
    assert green.stale() == stale


def test_a_deleted_source_another_manifest_and_another_command(green):
    (green.root / "Sources/C/c.swift").unlink()
    assert green.stale() == {"c", "mutate-one"}
    green.git("checkout", "-q", ".")
    green.manifest("// another\n")
    assert green.stale() == {"a", "b", "c", "mutate-one"}
    green.git("checkout", "-q", ".")
    green.write("script/full.toml", TABLE.replace("echo c ", "echo c twice "))
    assert green.stale() == {"c"}


def test_a_commit_that_this_clone_does_not_have(green):
    green.alter("c", commit="0" * 40, green="0" * 40)
    whys = {step.name: row["why"] for step, row in green.run().rows() if row["stale"]}
    assert whys == {"c": "this clone does not have commit 00000000"}


def test_the_record(project):
    head = project.git("rev-parse", "HEAD").strip()
    assert project.all("a", seed=7) == 0
    assert "\n== a, seed 7" in project.said and project.records == {"a": {
        "commit": head, "date": "2030-01-31T12:00:00Z", "seconds": project.records["a"]["seconds"], "speed": 1.0,
        "counts": {"passed": 3}, "seed": 7, "verdict": "green", "command": full.Table(project.root).steps[0].command,
        "green": head}}
    assert full.malformed("a", project.records["a"]) is None
    # Without one that is given, another seed each time.
    assert project.all("a") == 0 and project.records["a"]["seed"] != 7


def test_uncommitted_sources_are_refused(project):
    project.write("Sources/A/a.swift", "let y = 2\n")
    with pytest.raises(full.UsageError, match="b: Sources/A/a.swift not committed"):
        project.all("b")
    assert project.ran == []
    assert project.all("b", is_recorded=False) == 0
    assert project.ran == ["b"] and not (project.root / ".ci/full.json").exists()
    assert project.all("c") == 0, "it does not build A"


def test_sources_that_change_meanwhile_leave_no_record(project):
    project.write("script/full.toml", TABLE.replace("echo c ", "echo 1 >>Sources/C/c.swift; echo c "))
    assert project.all("c") == 1 and not (project.root / ".ci/full.json").exists()
    assert "c: not recorded: Sources/C/c.swift changed while it ran" in project.said


def test_a_red_step_names_the_commits_since_its_last_green_record(green):
    first = green.records["a"]["commit"]
    green.write("Sources/A/a.swift", "let y = 2\n")
    second = green.commit("Change A")
    green.write("Sources/C/c.swift", "let y = 2\n")
    green.commit("Change C")
    green.write(".build/bad", "what is wrong\n")
    assert green.all("a") == 1
    record = green.records["a"]
    assert (record["verdict"], record["green"], record["tail"][-1]) == ("red", first, "what is wrong")
    assert full.malformed("a", record) is None
    said = "\n".join(green.said)
    assert f"{second[:7]} Change A" in said and "Change C" not in said
    # It stays due, although nothing changed since.
    assert "a" not in green.stale() and "a" in {step.name for step in green.run().due()}
    assert "a" not in {step.name for step in green.run().due(with_red=False)}


def test_a_step_without_a_test_is_red(project):
    project.write("script/full.toml", TABLE.replace("echo 3 passed", "echo 0 passed"))
    assert project.all("a") == 1


def test_a_run_continues_after_an_interruption(project):
    # The step interrupts the process that runs it, and ends only when that ends it. A suite in the background inherits an
    # ignored SIGINT.
    ending = "echo b >>.build/ran; kill -INT $PPID; tail -f /dev/null"
    project.write("script/full.toml", TABLE.replace("echo b >>.build/ran", ending))
    program = "import full, pathlib, signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\nfull.speed = lambda: 1.0\nfull.main(pathlib.Path.cwd(), [])"
    environment = os.environ | {"PYTHONPATH": str(ROOT / "script")}
    ended = subprocess.run([sys.executable, "-B", "-c", program], cwd=project.root, env=environment, capture_output=True,
                           text=True, timeout=60, check=False)
    assert "KeyboardInterrupt" in ended.stderr
    assert project.ran == ["a", "b"] and set(project.records) == {"a"}
    project.write("script/full.toml", TABLE)
    assert project.all() == 0
    assert project.ran == ["b", "c", "mutate"] and set(project.records) == {"a", "b", "c", "mutate-one"}


@pytest.mark.parametrize("path, text, runs", [
    ("README.md", "x", []), ("Sources/A/a.swift", "let y = 2\n", []), ("Sources/A/a.swift", "withUnsafeBytes\n", ["b of ATests"]),
    ("Sources/C/c.swift", "let y = 2\n", ["c"]),
])
def test_what_changed_files_ask_for(green, path, text, runs):
    green.write(path, text)
    green.commit("Change")
    assert green.run().changed() == 0
    ran = (green.root / ".build/ran").read_text().splitlines() if runs else []
    assert ran == runs and bool(green.ran) == bool(runs)
    assert [found.groups() for line in green.said if (found := re.match(r"full: (.): (runs|does not run): .", line))] == [
        (name, "runs" if any(each.startswith(name) for each in runs) else "does not run") for name in "bc"]
    assert green.stale() >= {run[0] for run in runs}, "what CI ran is no record"


def test_an_unsafe_file_that_is_gone_and_records_that_are_not_green(green):
    green.write("Sources/A/u.swift", "Unsafe\n")
    green.commit("Add a file")
    assert green.all() == 0 and green.ran == ["a", "b", "mutate"]
    (green.root / "Sources/A/u.swift").unlink()
    assert green.run().changed() == 0 and green.ran == ["b"]
    green.git("checkout", "-q", "Sources")
    green.alter("c", verdict="red", tail=[])
    assert green.run().changed() == 0 and green.ran == ["c"]
    green.alter("c", green="0" * 40, verdict="green")
    assert green.run().changed() == 0 and green.ran == ["c"]
    (green.root / ".ci/full.json").unlink()
    assert green.run().changed() == 0
    # Without a commit to compare with, the whole step.
    assert (green.root / ".build/ran").read_text().splitlines() == ["b", "c"]


def errors(project):
    return full.check(project.run())[0]


def test_the_check_of_the_table(green):
    assert full.check(green.run()) == ([], [])
    (green.root / ".ci/full.json").unlink()
    assert full.check(green.run()) == ([], ["no record: a, b, c, mutate-one"])
    green.write("Sources/D/d.swift", "")
    assert errors(green) == ["Sources/D/d.swift belongs to no step; see docs/decisions/0097-long-tests.md"]
    (green.root / "Sources/D/d.swift").unlink()
    table = TABLE.replace('["script/a"', '["script/b"').replace('builds = ["C"]', 'builds = ["E"]')
    green.write("script/full.toml", table.replace('no_smoke = "none"\nchanged', "changed"))
    assert errors(green) == ["c: Package.swift has no target E", "a: no file is script/b",
                             "b: expected either smoke and planted, or no_smoke"]
    green.write("script/full.toml", TABLE)
    green.write("script/budget.txt", "a 100\nb 100\nmutate-one 100\nd 5\n")
    assert errors(green) == ["script/budget.txt: no row for c", "script/budget.txt: d: there is no such step"]


@pytest.mark.parametrize("members, wrong", [
    ({"verdict": "amber"}, "verdict"), ({"commit": "83da2106"}, "40 hexadecimal"), ({"seconds": "9"}, "seconds"),
    ({"seconds": True}, "seconds"), ({"speed": 0.0}, "out of range"), ({"date": "yesterday"}, "not a time"),
    ({"more": 1}, "expected the members"), ({"verdict": "red"}, "tail"),
])
def test_a_malformed_record(green, members, wrong):
    green.alter("a", **members)
    assert len(errors(green)) == 1 and wrong in errors(green)[0]


def test_a_record_of_no_step(green):
    green.write(".ci/full.json", json.dumps({"d": green.records["a"], **green.records}))
    assert errors(green) == [".ci/full.json: d: there is no such step"]


@pytest.mark.parametrize("days, warns", [(8, True), (6, False)])
def test_a_step_that_is_stale_for_long(green, days, warns):
    green.write("Sources/C/c.swift", "let y = 2\n")
    changed = NOW - datetime.timedelta(days=days)
    green.commit("Change C", date=changed.isoformat())
    green.write("Sources/C/c.swift", "let y = 3\n")
    green.commit("Change C again")
    found = [text for text in full.check(green.run())[1] if text.startswith("c ")]
    since = green.records["c"]["commit"][:8]
    assert found == ([f"c has been stale for {days} days: Sources/C/c.swift changed since {since}"] if warns else [])


def test_a_release_needs_every_step(green, capsys):
    assert full.main(green.root, ["--release"]) == 0
    green.write("Sources/C/c.swift", "let y = 2\n")
    assert full.main(green.root, ["--release"]) == 1
    green.git("checkout", "-q", ".")
    green.alter("a", verdict="red", tail=[])
    capsys.readouterr()
    assert full.main(green.root, ["--release"]) == 1
    assert capsys.readouterr().err == "a: red\n"


def test_the_list(green, capsys):
    green.write("Sources/C/c.swift", "let y = 2\n")
    assert full.main(green.root, ["--list", "--json", "b", "c"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["step"], row["verdict"], row["stale"], row["commit"]) for row in rows] == [
        (name, "green", name == "c", green.records[name]["commit"]) for name in "bc"]
    assert full.main(green.root, ["--list"]) == 0
    assert re.search(r"^c +green +.*stale: Sources/C/c.swift changed since", capsys.readouterr().out, re.MULTILINE)


def test_a_step_that_outgrew_its_budget_is_listed(green):
    green.alter("a", seconds=151)
    green.alter("b", seconds=151, speed=0.5)
    green.write(".build/tests/durations", "unit: exit 0 after 160 s\n")
    assert list(full.outgrown(full.Table(green.root), green.records, 1.0)) == [
        "a: took 151 s; its budget at speed 1.0 is 100 s", "ci/unit: took 160 s; its budget at speed 1.0 is 100 s"]


@pytest.mark.parametrize("smoke, planted, is_green", [
    ("true", "fails wrong sh -c 'echo wrong; exit 1'", True), ("false", "true", False),
    ("true", "fails wrong sh -c 'echo wrong'", False), ("true", "fails wrong sh -c 'echo other; exit 1'", False),
])
def test_a_smallest_form_must_work_and_recognize_a_planted_failure(project, smoke, planted, is_green):
    table = TABLE.replace('"true"', f'"{smoke}"').replace("fails planted sh -c 'echo planted; exit 1'", planted)
    project.write("script/full.toml", table)
    assert project.run().smoke([]) == (0 if is_green else 1)
    assert "b: no smoke: none" in project.said and not (project.root / ".ci/full.json").exists()


def test_words_that_mean_nothing(project):
    for words in (["d"], ["--stale", "a"], ["--json"]):
        with pytest.raises((full.UsageError, SystemExit)):
            full.main(project.root, words)


def test_this_repository():
    """Every Swift file belongs to a step, and SwiftPM's dependencies reach through the modules."""
    run = full.Run(ROOT, full.Table(ROOT))
    assert full.check(run)[0] == []
    lab = next(step for step in run.table.steps if step.name == "lab")
    assert "Sources/Wire/Bytes.swift" in lab.scope and "Tests/WireTests/a.swift" not in lab.scope
