"""Vaults: `test-peers vault`, and processes that a test starts beside it."""

import os
import pathlib
import subprocess
import typing

import processes
from products import peer

DRIVER = peer("vault")
# Without the buses of the user who runs the tests.
BARE = {name: value for name, value in os.environ.items() if not name.startswith(("DBUS_", "VAULT_"))} | {"DISPLAY": ""}


def start(back_end: str, folder: pathlib.Path, *words: str, prefix: tuple[str, ...] = (), **variables: str) -> subprocess.Popen:
    return processes.start([*prefix, *DRIVER, back_end, str(folder), *words], env=BARE | variables, text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def ask(back_end: str, folder: pathlib.Path, *words: str, **variables: str) -> str:
    """What the driver says, without the end of the line; a refusal too."""
    with start(back_end, folder, *words, **variables) as driver:
        output, _ = driver.communicate(timeout=60)
    assert driver.returncode in (0, 1), (driver.returncode, output)
    return output.strip()


# A bus on which every user may do everything, and no service starts by itself.
BUS = """<busconfig><type>{type}</type><listen>unix:path={path}</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>"""


class Machine:
    """Processes that go when the test does."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self._processes: list[subprocess.Popen] = []

    def start(self, *command: str, environment: dict[str, str] | None = None, **options) -> subprocess.Popen:
        with open(self.folder / "log", "ab") as log:
            process = processes.start(command, env=environment or BARE, stderr=log, **{"stdout": log} | options)
        self._processes.append(process)
        return process

    def __enter__(self) -> typing.Self:
        try:
            self._begin()
        except BaseException:
            # Python does not call `__exit__` of a `with` whose `__enter__` failed.
            self.__exit__()
            raise
        return self

    def __exit__(self, *error) -> None:
        for process in reversed(self._processes):
            process.kill()
            process.wait()
