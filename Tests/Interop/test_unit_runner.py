"""Tests/Support/unit.py counts the tests of both processes; it runs failed suites again if only tests failed."""

import os
import subprocess
import sys

import pytest

from products import ROOT

# Stands for the bundle of the tests: writes results, and fails as its file `mode` says.
BUNDLE = """#!/bin/sh
here=$(dirname "$0")
echo "$*" >>"$here/calls"
calls=$(wc -l <"$here/calls")
while [ "$1" != --xunit-output ]; do shift; done
results=$2 filter=$3
test() { echo "<testcase classname='$1' name='$2'>$3</testcase>"; }
whole() { echo "<testsuites><testsuite>$*</testsuite></testsuites>" >"$results"; }
case $(cat "$here/mode")-$filter in
trap-*) exit 4 ;;
signal---skip) whole "$(test B.Others 'good()')"; kill -ABRT $$ ;;
signal-*) failed=1 ;;
*---skip) whole "$(test B.Others 'good()')" ;;
once-*) [ "$calls" -gt 2 ] || failed=1 ;;
always-*) failed=1 ;;
esac
[ "$filter" = --skip ] && exit
[ -z "$failed" ] || { whole "$(test A.Some 'bad(_:)' '<failure/>')$(test A.Some 'good()')"; exit 1; }
whole "$(test A.Some 'bad(_:)')$(test A.Some 'good()')"
"""


@pytest.mark.parametrize("mode, retry, status, counts, calls", [
    ("never", "1", 0, "3 0 0", 2),
    ("once", "", 1, "2 1 0", 2),
    ("once", "1", 0, "3 0 0", 3),
    ("always", "1", 1, "2 1 0", 3),
    # Ends without results: that is the finding, and nothing runs again.
    ("trap", "1", 4, "0 1 0", 2),
    # A signal after the results, as when memory is found damaged at the end.
    ("signal", "1", 6, "2 1 0", 2),
])
def test_runs(tmp_path, mode, retry, status, counts, calls):
    folder = tmp_path / "debug"
    folder.mkdir()
    bundle = folder / "countersignPackageTests.xctest"
    bundle.write_text(BUNDLE)
    bundle.chmod(0o755)
    (folder / "mode").write_text(mode)
    done = subprocess.run(
        [sys.executable, "-B", ROOT / "Tests/Support/unit.py", tmp_path], capture_output=True, text=True,
        env=dict(os.environ, COUNTERSIGN_RETRY=retry), check=False)
    assert done.returncode == status, done.stdout + done.stderr
    assert ("flaky: unit: A.Some/bad(_:)" in done.stdout) == (calls == 3)
    lines = (folder / "calls").read_text().splitlines()
    assert len(lines) == calls
    if calls == 3:
        assert lines[2].endswith(r"--filter ^(A\.Some)/")
    tally = subprocess.run(
        [sys.executable, "-B", ROOT / "Tests/Support/tally.py", tmp_path / "unit.xml", str(status)],
        capture_output=True, text=True, check=True)
    assert tally.stdout.splitlines()[0] == counts
