"""The processes that tests start, and who ends them.

Each process leads a process group and belongs to an owner: the fixture that was being set up when the process was
started, or else the test that was running. When the owner ends, also because its setup failed, it kills the groups
by id. If pytest itself is killed, a reaper process kills them. As a program, this file is that reaper."""

import atexit
import contextlib
import os
import pathlib
import signal
import subprocess
import sys


class Owner:
    """A test or fixture, with what it must release when it ends."""

    def __init__(self):
        self._exits = contextlib.ExitStack()
        self._groups: set[int] = set()

    def start(self, command, **options) -> subprocess.Popen:
        """`subprocess.Popen`, in a group of its own."""
        if not options.get("start_new_session"):
            options["process_group"] = 0
        process = subprocess.Popen(command, **options)
        self._groups.add(process.pid)
        reaper.watch(process.pid)
        self._exits.callback(end_process, process)
        return process

    def at_end(self, release) -> None:
        """Calls `release` when the owner ends, before all that was registered earlier."""
        self._exits.callback(release)

    def end(self) -> None:
        try:
            self._exits.close()
        finally:
            # A server's successor outlives the leader of its group.
            kill_groups(self._groups)
            reaper.forget(self._groups)
            self._groups = set()

    def __enter__(self) -> "Owner":
        owners.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        owners.remove(self)


def end_process(process: subprocess.Popen) -> None:
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def kill_groups(groups: set[int], session: int | None = None) -> None:
    """Kills the members of these groups. A group is of this session, or its leader began a session. The id of a
    session is 0 where its leader is outside this PID namespace, as in a container."""
    if session is None:
        session = os.getsid(0)
    for member, group, of_session in members() if groups else ():
        if group in groups and of_session in (session, group):
            with contextlib.suppress(ProcessLookupError):
                os.kill(member, signal.SIGKILL)


def members():
    """Each process that has not ended: its id, its group and its session. Source: proc_pid_stat(5)."""
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if fields[0] not in "XZ":
                yield int(folder.name), int(fields[2]), int(fields[3])


class Reaper:
    """A process that reads groups from a pipe, and kills them when the pipe closes."""

    def __init__(self):
        self._pipe = None

    def watch(self, group: int) -> None:
        if self._pipe is None:
            self._pipe = subprocess.Popen(
                [sys.executable, "-S", "-E", __file__, str(os.getsid(0))], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, start_new_session=True).stdin
        self._say(f"+{group}")

    def forget(self, groups: set[int]) -> None:
        for group in groups:
            self._say(f"-{group}")

    def _say(self, line: str) -> None:
        os.write(self._pipe.fileno(), f"{line}\n".encode())


def reap(session: int) -> None:
    groups: set[int] = set()
    for line in sys.stdin:
        (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
    kill_groups(groups, session)


reaper = Reaper()
# The last one is the current owner. The first one owns what a program starts that is not a test.
owners = [Owner()]
atexit.register(owners[0].end)


def current() -> Owner:
    return owners[-1]


def start(command, **options) -> subprocess.Popen:
    return current().start(command, **options)


if __name__ == "__main__":
    reap(int(sys.argv[1]))
