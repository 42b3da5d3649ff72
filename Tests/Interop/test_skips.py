"""Where nothing may be skipped for want of a package, such a skip fails, and one for want of a right or a device is still said."""

import os
import pathlib
import subprocess
import sys

import pytest

TESTS = pathlib.Path(__file__).resolve().parents[1]
SKIPPING = """import needs, pytest
@needs.programs("no-such-program")
def test_a_program(): pass
@needs.machine(False, "a device")
def test_a_device(): pass
def test_in_its_midst(): pytest.skip("for a reason of its own")
@pytest.mark.xfail
def test_known_to_fail(): assert False
"""


@pytest.mark.parametrize("switch,failed", [("0", set()), ("1", {"test_a_program", "test_in_its_midst"})], ids=["as usual", "no skips"])
def test_a_skip_for_want_of_a_package_fails_where_none_may_be(tmp_path, switch, failed):
    (tmp_path / "test_some.py").write_text(SKIPPING)
    path = os.pathsep.join(map(str, (TESTS, TESTS / "Support")))
    run = subprocess.run([sys.executable, "-B", "-m", "pytest", "-p", "conftest", "-p", "no:cacheprovider", "-rsfE", str(tmp_path)],
                         env=os.environ | {"PYTHONPATH": path, "COUNTERSIGN_NO_SKIPS": switch}, capture_output=True, text=True, check=False)
    assert {line.split("::")[1].split()[0] for line in run.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))} == failed, run.stdout
    assert "not on this machine: a device" in run.stdout
    assert ("no no-such-program, and COUNTERSIGN_NO_SKIPS is set" in run.stdout) == bool(failed)
    assert run.returncode == (1 if failed else 0)
