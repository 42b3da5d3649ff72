"""Clocks of a server that a test sets while the server runs."""

import atexit
import functools
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from products import ROOT


@functools.cache
def library() -> pathlib.Path:
    """Tests/Support/jumping_clock.c, compiled."""
    folder = tempfile.mkdtemp(prefix="cs-clock-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    # A database runs as another user.
    pathlib.Path(folder).chmod(0o755)
    path = pathlib.Path(folder) / "jumping_clock.so"
    subprocess.run(["cc", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", path,
                    ROOT / "Tests/Support/jumping_clock.c"], check=True)
    return path


class Clock:
    """The clocks of the programs that run in its environment. `jumps` sets the wall clock alone, as an administrator
    does; `advance` lets time pass, for every clock and timer."""

    def __init__(self, folder: pathlib.Path):
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "shift"
        self.shift, self.passed = 0.0, 0.0
        self._set()
        self.environment = {"LD_PRELOAD": str(library()), "JUMPING_CLOCK": str(self.path)}

    def _set(self) -> None:
        """At once: the programs map these bytes."""
        numbers = [int(seconds * 1e9) for seconds in (self.shift + self.passed, self.passed)]
        with open(self.path, "r+b" if self.path.exists() else "wb", buffering=0) as file:
            file.write(b"".join(number.to_bytes(8, sys.byteorder, signed=True) for number in numbers))

    def jumps(self, shift: float) -> None:
        self.shift = shift
        self._set()

    def advance(self, seconds: float) -> None:
        self.passed += seconds
        self._set()

    def lapses(self, seconds: float) -> None:
        """Time passes for timers and leases; the wall clock still agrees with others."""
        self.shift -= seconds
        self.advance(seconds)

    @property
    def now(self) -> int:
        return int(self.time())

    def time(self) -> float:
        """The wall clock, as `time.time()`."""
        return time.time() + self.shift + self.passed
