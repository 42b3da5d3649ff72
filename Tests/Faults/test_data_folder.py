"""The data folder and the control socket in it: closed to others though it was made beforehand, and no
message leaves descriptors behind."""

import array
import os
import pathlib
import socket
import stat

import pytest

from gateway import Gateway
from waiting import until


@pytest.fixture
def front(tmp_path):
    gateway = Gateway(tmp_path / "gateway", "--tls", "off")
    gateway.data.mkdir()
    yield gateway
    if gateway.process and gateway.process.poll() is None:
        assert gateway.stop() == 0


def mode(path: pathlib.Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("before", [0o755, 0o750, 0o701, 0o700])
def test_a_folder_that_was_there_is_closed_to_others(front, before):
    front.data.chmod(before)
    front.start()
    assert mode(front.data) == 0o700
    assert "mode" not in front.log_path.read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a folder to another user")
def test_the_folder_of_another_user_is_left_to_him(front):
    front.data.chmod(0o755)
    os.chown(front.data, 65_534, -1)
    front.start()
    assert mode(front.data) == 0o755
    # Once in the log and once on the standard error of the process.
    text = front.log_path.read_text()
    assert text.count("the data folder has mode 0755 and should have 0700") == 2 and "user 65534" in text


def descriptors(gateway: Gateway) -> int:
    return len(os.listdir(f"/proc/{gateway.process.pid}/fd"))


@pytest.mark.parametrize("count", [1, 2, 3, 20])
def test_descriptors_that_nobody_asked_for_are_closed(front, count):
    front.start()
    # It listens there a moment after it says that it listens for clients.
    until(lambda: (front.data / "control").exists())

    def send(passed: int) -> None:
        folder = os.open(front.data, os.O_RDONLY | os.O_DIRECTORY)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as control:
            control.settimeout(10)
            control.connect(f"/proc/self/fd/{folder}/control")
            os.close(folder)
            numbers = array.array("i", [0] * passed)
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, numbers)] if passed else []
            control.sendmsg([b"nonsense"], rights)
            control.recv(512)

    send(0)
    before = descriptors(front)
    for _ in range(20):
        send(count)
    until(lambda: descriptors(front) <= before + 2)
    assert descriptors(front) <= before + 2
