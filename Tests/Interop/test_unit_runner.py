"""Tests/Support/unit.py counts the tests of both processes, also of one that did not come to its end."""

import subprocess
import sys

import pytest

from products import ROOT

# Stands for the bundle of the tests: writes results, and fails as its file `mode` says.
BUNDLE = """#!/bin/sh
here=$(dirname "$0")
echo "$*" >>"$here/calls"
while [ "$1" != --xunit-output ]; do shift; done
results=$2 filter=$3
test() { echo "<testcase classname='$1' name='$2'>$3</testcase>"; }
whole() { echo "<testsuites><testsuite>$*</testsuite></testsuites>" >"$results"; }
case $(cat "$here/mode")-$filter in
trap-*) exit 4 ;;
signal---skip) whole "$(test B.Others 'good()')"; kill -ABRT $$ ;;
signal-*) failed=1 ;;
*---skip) whole "$(test B.Others 'good()')" ;;
failed-*) failed=1 ;;
esac
[ "$filter" = --skip ] && exit
[ -z "$failed" ] || { whole "$(test A.Some 'bad(_:)' '<failure/>')$(test A.Some 'good()')"; exit 1; }
whole "$(test A.Some 'bad(_:)')$(test A.Some 'good()')"
"""


@pytest.mark.parametrize("mode, status, counts", [
    ("passed", 0, "3 0 0"), ("failed", 1, "2 1 0"),
    # Ends without results.
    ("trap", 4, "0 1 0"),
    # A signal after the results, as when memory is found damaged at the end.
    ("signal", 6, "2 1 0"),
])
def test_each_process_runs_once(tmp_path, mode, status, counts):
    folder = tmp_path / "debug"
    folder.mkdir()
    bundle = folder / "countersignPackageTests.xctest"
    bundle.write_text(BUNDLE)
    bundle.chmod(0o755)
    (folder / "mode").write_text(mode)
    done = subprocess.run(
        [sys.executable, "-B", ROOT / "Tests/Support/unit.py", tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    assert len((folder / "calls").read_text().splitlines()) == 2
    tally = subprocess.run(
        [sys.executable, "-B", ROOT / "Tests/Support/tally.py", tmp_path / "unit.xml", str(status)],
        capture_output=True, text=True, check=True)
    assert tally.stdout.splitlines()[0] == counts
