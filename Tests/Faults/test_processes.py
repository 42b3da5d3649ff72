"""No process outlives the test or fixture that started it: neither when a fixture fails after it started a server, nor when
a test leaves one, nor when pytest is killed."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys

import processes
import pytest
from products import ROOT
from waiting import until

TESTS = '''
import os, pathlib, time
import pytest
import processes
from gateway import Gateway

LOG = pathlib.Path(__file__).with_name("pids")
HERE = pathlib.Path(__file__).parent


def started(process):
    with LOG.open("a") as log:
        log.write(f"{process.pid}\\n")
    return process


def is_there(process):
    return process.poll() is None


@pytest.fixture(scope="module")
def shared():
    return started(processes.start(["sleep", "1000"]))


@pytest.fixture
def failing(tmp_path):
    gateway = Gateway(tmp_path / "gateway", "--tls", "off")
    started(gateway.start().process)
    # The child outlives its parent, as a server's successor does.
    started(processes.start(["sh", "-c", "sleep 1000 & exec true"])).wait()
    raise RuntimeError("after it started a server")


def test_first(shared, failing):
    pass


def test_second(shared):
    assert is_there(shared)
    for pid in LOG.read_text().split()[1:]:
        assert int(pid) not in [group for _, group, _ in processes.members()]
    started(processes.start(["sleep", "1000"]))


def test_third(shared):
    assert is_there(shared)
    if "KILLED" in os.environ:
        print("READY", flush=True)
        shared.wait()
'''


def left(folder: pathlib.Path) -> list[tuple[int, int, int]]:
    groups = {int(pid) for pid in (folder / "pids").read_text().split()}
    assert len(groups) == 4
    return [each for each in processes.members() if each[1] in groups]


@pytest.fixture
def command(tmp_path):
    shutil.copy(ROOT / "Tests/conftest.py", tmp_path)
    (tmp_path / "test_inner.py").write_text(TESTS)
    return [sys.executable, "-B", "-m", "pytest", "-c", ROOT / "pytest.ini", "--rootdir", tmp_path, "-s", "--basetemp",
            tmp_path / "temporary", tmp_path / "test_inner.py"]


def test_a_fixture_that_fails_leaves_no_server(tmp_path, command):
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    assert "2 passed, 1 error" in done.stdout and "after it started a server" in done.stdout, done.stdout
    assert left(tmp_path) == []


def test_killing_pytest_leaves_no_server(tmp_path, command):
    inner = processes.start(command, text=True, stdout=subprocess.PIPE, env=os.environ | {"KILLED": "1"})
    assert any("READY" in line for line in inner.stdout)
    assert len(left(tmp_path)) == 1
    inner.send_signal(signal.SIGKILL)
    until(lambda: not left(tmp_path), "the reaper")
