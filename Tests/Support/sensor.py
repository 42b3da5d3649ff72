"""A fingerprint reader on a bus of its own: the real fprintd, over libfprint's virtual sensor, which is shown pictures."""

import os
import pathlib
import socket
import struct
import subprocess

import fingerprint
import processes
from vaults import BUS, Machine
from waiting import until

FPRINTD = "/usr/libexec/fprintd"


class Sensor(Machine):
    def __init__(self, folder: pathlib.Path):
        super().__init__(folder)
        self.environment = os.environ | {"DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={folder}/bus"}

    def _begin(self) -> None:
        (self.folder / "bus.conf").write_text(BUS.format(type="system", path=self.folder / "bus"))
        (self.folder / "state").mkdir()
        self.start("dbus-daemon", "--nofork", f"--config-file={self.folder}/bus.conf")
        until((self.folder / "bus").exists, "no bus")
        polkit = self.start("/usr/bin/python3", str(pathlib.Path(__file__).with_name("polkit.py")),
                            environment=self.environment, stdout=subprocess.PIPE)
        with polkit.stdout:
            assert polkit.stdout.readline() == b"ready\n"
        self.start(FPRINTD, "-t", environment=self.environment | {
            "FP_VIRTUAL_IMAGE": f"{self.folder}/sensor", "STATE_DIRECTORY": f"{self.folder}/state",
            "FP_DRIVERS_ALLOWLIST": "virtual_image"})
        until(lambda: self._run("fprintd-list", "root").returncode == 0, "no fprintd")

    def _run(self, *command: str) -> subprocess.CompletedProcess:
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=60)

    def touch(self, finger: int) -> None:
        """Lays a finger on the sensor once, as soon as it listens."""
        picture = fingerprint.picture(finger)
        with socket.socket(socket.AF_UNIX) as sensor:
            # The sensor listens only while a process uses it.
            until(lambda: sensor.connect_ex(str(self.folder / "sensor")) == 0, "the sensor is not used")
            sensor.sendall(struct.pack("ii", fingerprint.WIDTH, fingerprint.HEIGHT) + picture)
            sensor.shutdown(socket.SHUT_WR)
            sensor.recv(1)

    def enrol(self, finger: int, user: str = "root") -> None:
        """Shows a new finger as often as fprintd wants to see it."""
        enrolling = processes.start(["fprintd-enroll", "-f", "right-index-finger", user], env=self.environment,
                                     stdout=subprocess.PIPE, text=True)
        lines = []
        for line in enrolling.stdout:
            lines.append(line)
            if "enroll-completed" in line:
                break
            if "Enrolling" in line or "enroll-stage-passed" in line:
                self.touch(finger)
        assert enrolling.wait(timeout=60) == 0, "".join(lines)
