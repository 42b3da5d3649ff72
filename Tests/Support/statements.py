"""The SQL statements that a server runs in SQLite (Tests/Support/statements.c)."""

import atexit
import functools
import pathlib
import shutil
import subprocess
import tempfile

from products import ROOT


@functools.cache
def library() -> pathlib.Path:
    folder = tempfile.mkdtemp(prefix="cs-statements-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = pathlib.Path(folder) / "statements.so"
    subprocess.run(["cc", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", path,
                    ROOT / "Tests/Support/statements.c"], check=True)
    return path


class Statements:
    """Those of the programs that run in its environment."""

    def __init__(self, folder: pathlib.Path):
        self.path = folder / "statements"
        self.environment = {"LD_PRELOAD": str(library()), "STATEMENTS": str(self.path)}

    def _lines(self) -> list[tuple[int, str]]:
        return [(int(number), sql) for number, _, sql in
                (line.partition(" ") for line in self.path.read_text(errors="replace").splitlines())]

    def last_connection(self) -> int:
        """The number of the connection that was opened last."""
        return max(number for number, _ in self._lines())

    def on(self, connection: int) -> list[str]:
        """Those of this connection so far."""
        return [sql for number, sql in self._lines() if number == connection]
