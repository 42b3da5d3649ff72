"""`countersign lab` on the command line: what it selects, prints, writes and compares, and its exit
status."""

import html.parser
import json
import re

import pytest
from gateway import ROOT, run

ROW, ATTACK = "md5", "replay-at-once"
LETTERS = {"H", "F", "–"}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """One small run: a legacy scheme at its own server and at our gateway, and ours."""
    folder = tmp_path_factory.mktemp("lab")
    done = run("lab", "--scheme", "md5,md5+gateway,countersign", "--attack", "replay-at-once,tamper-body,offline-guessing",
               "--json", "--html", folder / "page.html", "--save", folder / "matrix.json", timeout=120)
    assert done.returncode == 0, done.err
    done.page, done.saved = (folder / "page.html").read_text(), (folder / "matrix.json").read_text()
    return done


def test_the_shape_of_the_json(found):
    document = json.loads(found.out)
    assert json.loads(found.saved) == document
    assert [row["scheme"] for row in document["rows"]] == ["md5", "md5+gateway", "countersign"]
    assert document["not_run"] == []
    for row in document["rows"]:
        assert list(row["cells"]) == [attack["name"] for attack in document["attacks"]]
        for cell in row["cells"].values():
            assert cell["verdict"] in LETTERS
            assert cell["how"]
            assert bool(cell["steps"]) == (cell["verdict"] != "–")
    assert "\x1b" not in found.out


def test_the_verdicts_are_what_happened(found):
    cells = {row["scheme"]: row["cells"] for row in json.loads(found.out)["rows"]}
    assert cells["md5"]["replay-at-once"]["verdict"] == "F"
    assert cells["md5"]["offline-guessing"]["verdict"] == "F"
    assert {cell["verdict"] for cell in cells["countersign"].values()} == {"H"}
    # What the attacker sent is in the story.
    shown = "".join(step["shown"] or "" for step in cells["md5"]["replay-at-once"]["steps"])
    assert "POST /transfer" in shown and "Bearer" in shown


def test_a_run_is_recorded(tmp_path):
    def last() -> tuple[int, dict]:
        done = run("lab", "last", "--data", tmp_path, "--json")
        return done.returncode, json.loads(done.out)

    assert last() == (1, {"run": None})
    done = run("lab", "--scheme", "md5,countersign", "--attack", "replay-at-once,tamper-body", "--record", "--data", tmp_path, timeout=120)
    assert done.returncode == 0, done.err
    record = tmp_path / "lab-record"
    assert record.stat().st_mode & 0o777 == 0o600 and record.stat().st_size < 256 << 10
    status, known = last()
    assert status == 0
    assert {row["scheme"]: row["cells"] for row in known["run"]["rows"]} == {
        "md5": {"tamper-body": "F", "replay-at-once": "F"}, "countersign": {"tamper-body": "H", "replay-at-once": "H"}}
    assert known["run"]["version"] == json.loads(run("version", "--json").out)["version"]
    assert re.search(r"^countersign +2 +0 +0 +0", run("lab", "last", "--data", tmp_path).out, re.M)
    # A run that is not recorded changes nothing, and one that cannot be is not begun.
    before = record.read_bytes()
    assert run("lab", "--scheme", ROW, "--attack", ATTACK, timeout=120).returncode == 0 and record.read_bytes() == before
    done = run("lab", "--scheme", ROW, "--attack", ATTACK, "--record", "--data", tmp_path / "missing")
    assert done.returncode == 3 and done.out == "", done.err
    for damage in ("", "[]", '{"run":1}', before.decode().replace('"H"', '"<b>"', 1), before.decode() + " " * (256 << 10)):
        record.write_text(damage)
        done = run("lab", "last", "--data", tmp_path)
        assert done.returncode == 1 and "damaged" in done.err, damage[:40]


class Page(html.parser.HTMLParser):
    """What a browser would load and follow."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.anchors, self.open = set(), [], set(), []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.tags.add(tag)
        if tag not in {"meta", "br"}:
            self.open.append(tag)
        if "href" in values:
            self.links.append(values["href"])
        if "id" in values:
            self.anchors.add(values["id"])
        assert not {"src", "style", "srcset"} & set(values) and not any(name.startswith("on") for name in values)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_stands_alone(found):
    page = Page(found.page)
    assert page.open == []
    assert page.links and all(link[0] == "#" and link[1:] in page.anchors for link in page.links)
    assert not page.tags & {"script", "img", "link", "iframe", "object", "form"}
    assert "md5/replay/replay-at-once" in page.anchors


def test_an_expectation_that_holds_and_one_that_does_not(found, tmp_path):
    matrix = json.loads(found.saved)
    matrix["rows"] = [row for row in matrix["rows"] if row["scheme"] == ROW]
    file = tmp_path / "expected.json"
    file.write_text(json.dumps(matrix))
    selected = ("lab", "--scheme", ROW, "--attack", ATTACK, "--expect", file)
    done = run(*selected)
    assert done.returncode == 0, done.err
    assert re.search(rf"^  F  {ATTACK}  \S", done.out, re.M)

    matrix["rows"][0]["cells"][ATTACK]["verdict"] = "H"
    file.write_text(json.dumps(matrix))
    done = run(*selected)
    assert done.returncode == 1
    assert f"{ROW} {ATTACK}: expected H, got F: " in done.err

    del matrix["rows"][0]["cells"][ATTACK]
    file.write_text(json.dumps(matrix))
    done = run(*selected)
    assert done.returncode == 1
    assert "not in the expectation" in done.err


def test_what_there_is():
    done = run("lab", "--list")
    assert done.returncode == 0
    assert "tamper-path" in done.out and "countersign-no-tls" in done.out
    document = json.loads(run("lab", "--list", "--json").out)
    assert {"name", "column", "sentence"} == set(document["attacks"][0])
    # Every legacy row has its twin behind the gateway. That of an app whose routes are open there is `token`.
    names = [row["scheme"] for row in document["rows"]]
    twins = [name for name in names if name.endswith("+gateway")]
    assert "open-route+gateway" in twins and "token" in names
    twins.remove("open-route+gateway")
    assert len(twins) >= 15 and all(name.removesuffix("+gateway") in names for name in twins)


@pytest.mark.parametrize(("options", "said"), [
    (["--scheme", "md55"], "did you mean `md5`?"), (["--html", "/nonexistent/page.html"], "cannot be written"),
    (["--broken", "--record"], "--record"),
])
def test_used_wrongly(options, said):
    done = run("lab", *options)
    assert done.returncode == 2
    assert said in done.err
    assert done.out == ""


def test_other_peoples_tools_have_to_be_there():
    done = run("lab", "--scheme", ROW, "--attack", "mitm", "--with", "mitmproxy=/nonexistent")
    assert done.returncode == 3
    assert "/nonexistent" in done.err


def test_the_expected_matrix_is_whole():
    """Each row and attack is expected to end in some way; ours never fall, and every old server does somewhere."""
    expected = json.loads((ROOT / "Vectors/lab/matrix.json").read_text())
    listed = json.loads(run("lab", "--list", "--json").out)
    attacks = {attack["name"] for attack in listed["attacks"]}
    assert [row["scheme"] for row in expected["rows"]] == [row["scheme"] for row in listed["rows"]]
    for row in expected["rows"]:
        assert set(row["cells"]) == attacks, row["scheme"]
        verdicts = {cell["verdict"] for cell in row["cells"].values()}
        assert verdicts <= LETTERS
        if row["scheme"].startswith("countersign"):
            assert "F" not in verdicts, row["scheme"]
        elif not row["scheme"].endswith("+gateway") and row["scheme"] != "message-signatures-password":
            assert "F" in verdicts, row["scheme"]
