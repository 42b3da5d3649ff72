"""Tests/Support/tally.py and script/steps count what a step's tests did, also where the step did not come to its end."""

import subprocess
import sys

import pytest

from products import ROOT

TALLY = ROOT / "Tests/Support/tally.py"
GOOD = '<testcase classname="A" name="good"/>'
BAD = '<testcase classname="A" name="bad"><failure message="it is not 4"/></testcase>'


def whole(*cases: str) -> str:
    return f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>"


@pytest.mark.parametrize("text, status, counts", [
    (None, 0, "1 0 0"), (None, 1, "0 1 0"),
    (whole(), 0, "1 0 0"), (whole(GOOD, GOOD), 0, "2 0 0"), (whole(GOOD, BAD), 1, "1 1 0"),
    # The last test ended the process.
    (whole(GOOD), 66, "1 1 0"),
    # The process ended while it wrote the file.
    ("", 0, "0 1 0"), (whole(GOOD)[:60], 0, "0 1 0"), (whole(GOOD)[:60], 66, "0 1 0"),
])
def test_counts(tmp_path, text, status, counts):
    report = tmp_path / "report.xml"
    if text is not None:
        report.write_text(text)
    done = subprocess.run([sys.executable, "-B", TALLY, report, str(status)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0] == counts


def step(tmp_path, command: str) -> list[str]:
    """The lines that repeat what failed, of one step."""
    script = f"results='{tmp_path}'; . script/steps; step one '{tmp_path}/one.xml' sh -c '{command}'; total"
    done = subprocess.run(["sh", "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    return [line for line in done.stdout.splitlines() if line.startswith("failed: one: ")]


def test_a_sanitizers_report_is_repeated(tmp_path):
    lines = step(tmp_path, "echo begun; echo ==1==ERROR: AddressSanitizer: heap-use-after-free; "
                           "for number in 1 2 3; do echo \"    #$number in call\"; done; seq 100; exit 66")
    assert lines[0] == "failed: one: exit 66: ==1==ERROR: AddressSanitizer: heap-use-after-free"
    assert lines[1].endswith("#1 in call") and 3 < len(lines) <= 16


def test_a_trap_is_repeated(tmp_path):
    assert step(tmp_path, "echo a.swift:3: Fatal error: Index out of range; echo more; exit 1") == [
        "failed: one: exit 1: a.swift:3: Fatal error: Index out of range"]


def test_a_tools_last_line_is_repeated(tmp_path):
    assert step(tmp_path, "echo what the tool says; exit 2") == ["failed: one: exit 2: what the tool says"]
