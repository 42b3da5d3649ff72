"""The sample app (Examples/Notes) as a command-line program, its backend, and its settings file."""

import base64
import collections.abc
import json
import pathlib
import queue
import secrets
import subprocess
import sys
import threading
import time

import processes
from gateway import ROOT, Gateway
from products import NOTES

PROGRAM = NOTES


class NotesBackend:
    """Examples/Notes/backend.py in a process of its own."""

    def __enter__(self) -> "NotesBackend":
        command = [sys.executable, "-B", ROOT / "Examples/Notes/backend.py", "--port", "0"]
        self.process = processes.start(command, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.url = self.process.stdout.readline().strip().removeprefix("listening on ")
        assert self.url.startswith("http://127.0.0.1:"), self.url
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


def some_pin() -> str:
    """The pin of an unknown key."""
    return "sha256/" + base64.b64encode(secrets.token_bytes(32)).decode()


def write_settings(path: pathlib.Path, gateway: Gateway, *, app: str = "demo", **changed: object) -> dict:
    """A settings file with a release of its own. Returns that release, as `release add --json` prints it."""
    release = json.loads(gateway.admin("release", "add", app, "--platform", "ios", "--version",
                                       f"1.{secrets.token_hex(6)}", "--json").out)
    pin = next(line for line in gateway.started if "sha256/" in line).split()[-1]
    settings = {"url": gateway.url, "app": app, "key_id": release["key_id"], "secret": release["secret"],
                "authority_key": release["authority_key"], "next_authority_key": release["next_authority_key"], "pins": [pin], "backup_pins": [some_pin()]}
    settings |= changed
    path.write_text(json.dumps({name: value for name, value in settings.items() if value is not None}))
    return release


class NotesApp:
    """One run of the program, from its start to its end. `states` has every state that it printed."""

    def __init__(self, settings: pathlib.Path, vault: pathlib.Path, *options: str,
                 prefix: tuple[str, ...] = ()):
        command = [*prefix, PROGRAM, "--settings", str(settings), "--vault", str(vault), "--json", *options]
        self.process = processes.start(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)
        self.states: list[dict] = []
        self.arrived: queue.SimpleQueue = queue.SimpleQueue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self) -> None:
        for line in self.process.stdout:
            self.arrived.put(json.loads(line))
        self.arrived.put(None)

    def __enter__(self) -> "NotesApp":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def settles(self, is_it: collections.abc.Callable[[dict], bool] = lambda state: True,
                seconds: float = 30) -> dict:
        """The next state in which nothing is under way and `is_it` holds."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                state = self.arrived.get(timeout=max(deadline - time.monotonic(), 0.01))
            except queue.Empty:
                raise AssertionError(f"no such state; the last ones: {self.states[-5:]}") from None
            assert state is not None, f"the program ended: {self.process.stderr.read()}"
            self.states.append(state)
            if not state["busy"] and is_it(state):
                return state

    def shows(self, screen: str, **expected: object) -> dict:
        """Waits until it shows this."""
        return self.settles(lambda state: state["screen"] == screen
                            and all(state.get(name) == value for name, value in expected.items()))

    def does(self, *lines: str) -> dict:
        """Types a command, and what it asks for. Returns the state that it leads to."""
        self.types(*lines)
        return self.settles()

    def types(self, *lines: str) -> None:
        self.process.stdin.write("".join(f"{line}\n" for line in lines))
        self.process.stdin.flush()

    def ends_input(self, *lines: str) -> None:
        """Types the last lines."""
        self.types(*lines)
        self.process.stdin.close()
        self.process.stdin = None

    def quits(self) -> None:
        self.types("quit")
        assert self.process.wait(60) == 0, self.process.stderr.read()

    def is_killed(self) -> None:
        self.process.kill()
        self.process.wait(60)


def texts(state: dict) -> list[str]:
    return [note["text"] for note in state["notes"]]
