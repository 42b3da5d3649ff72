"""A fingerprint reader on a bus of its own: the real fprintd, over libfprint's virtual sensor, which is shown pictures."""

import os
import pathlib
import socket
import struct
import subprocess
import time

import fingerprint

FPRINTD = "/usr/libexec/fprintd"
_BUS = """<busconfig><type>system</type><listen>unix:path={path}</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>"""


class Sensor:
    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.environment = os.environ | {"DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={folder}/bus"}
        self._processes: list[subprocess.Popen] = []

    def __enter__(self) -> "Sensor":
        (self.folder / "bus.conf").write_text(_BUS.format(path=self.folder / "bus"))
        (self.folder / "state").mkdir()
        self._start("dbus-daemon", "--nofork", f"--config-file={self.folder}/bus.conf")
        self._until((self.folder / "bus").exists)
        polkit = self._start("/usr/bin/python3", str(pathlib.Path(__file__).with_name("polkit.py")))
        assert polkit.stdout.readline() == b"ready\n"
        self._start(FPRINTD, "-t", FP_VIRTUAL_IMAGE=str(self.folder / "sensor"), STATE_DIRECTORY=str(self.folder / "state"),
                    FP_DRIVERS_ALLOWLIST="virtual_image")
        self._until(lambda: self._run("fprintd-list", "root").returncode == 0)
        return self

    def __exit__(self, *error) -> None:
        for process in reversed(self._processes):
            process.kill()
            process.wait()
            process.stdout.close()

    def _start(self, *command: str, **variables: str) -> subprocess.Popen:
        process = subprocess.Popen(command, env=self.environment | variables, stdout=subprocess.PIPE,
                                   stderr=open(self.folder / "log", "ab"))
        self._processes.append(process)
        return process

    def _run(self, *command: str) -> subprocess.CompletedProcess:
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=20)

    @staticmethod
    def _until(there, seconds: float = 10) -> None:
        end = time.monotonic() + seconds
        while not there():
            assert time.monotonic() < end, "does not start"
            time.sleep(0.02)

    def touch(self, finger: int) -> None:
        """Lays a finger on the sensor once, as soon as it listens."""
        picture = fingerprint.picture(finger)
        with socket.socket(socket.AF_UNIX) as sensor:
            # It listens while somebody uses it.
            self._until(lambda: sensor.connect_ex(str(self.folder / "sensor")) == 0)
            sensor.sendall(struct.pack("ii", fingerprint.WIDTH, fingerprint.HEIGHT) + picture)
            sensor.shutdown(socket.SHUT_WR)
            sensor.recv(1)

    def enrol(self, finger: int, user: str = "root") -> None:
        """Shows a new finger as often as fprintd wants to see it."""
        enrolling = subprocess.Popen(["fprintd-enroll", "-f", "right-index-finger", user], env=self.environment,
                                     stdout=subprocess.PIPE, text=True)
        lines = []
        for line in enrolling.stdout:
            lines.append(line)
            if "enroll-completed" in line:
                break
            if "Enrolling" in line or "enroll-stage-passed" in line:
                self.touch(finger)
        assert enrolling.wait(timeout=10) == 0, "".join(lines)
