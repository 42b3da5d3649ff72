"""A clock for a server that a test can set while the server runs."""

import pathlib
import subprocess
import sys
import time

from gateway import ROOT


class Clock:
    """The server's wall clock, replaced by Tests/Support/jumping_clock.c. The monotonic clock is unchanged,
    because it cannot be set."""

    def __init__(self, folder: pathlib.Path):
        library, self.path = folder / "jumping_clock.so", folder / "shift"
        subprocess.run(["cc", "-O1", "-Wall", "-shared", "-fPIC", "-o", library, ROOT / "Tests/Support/jumping_clock.c"], check=True)
        self.path.write_bytes(bytes(8))
        self.shift = 0
        self.environment = {"LD_PRELOAD": str(library), "JUMPING_CLOCK": str(self.path)}

    def jumps(self, shift: int) -> None:
        """At once: the bytes are changed where they lie."""
        with open(self.path, "r+b", buffering=0) as file:
            file.write(shift.to_bytes(8, sys.byteorder, signed=True))
        self.shift = shift

    @property
    def now(self) -> int:
        return int(time.time()) + self.shift
