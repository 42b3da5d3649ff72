"""The kinds of request that bench.py, instructions.py and profile.py measure, and how each is set up: a
gateway with an app and a key for it, the backend of backend.c, and the options of load.c."""

import json
import pathlib
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "Tests/Support"))

from gateway import Gateway  # noqa: E402
from person import Person  # noqa: E402
from ports import reserve_port  # noqa: E402
from signing import decode_secret  # noqa: E402
from unsealing import ROOT as SESSION_ROOT  # noqa: E402
from unsealing import SIGNING_KEY, device_keys, request_key, vault  # noqa: E402

LOAD, BACKEND = ROOT / ".build/bench/load", ROOT / ".build/bench/backend"


class Lie(Exception):
    """A measurement of something else than it says: an answer or a request was lost, repeated or changed."""


class Backend:
    """The backend, which checks requests and counts them (backend.c)."""

    def __init__(self, binary: pathlib.Path = BACKEND):
        self.port = reserve_port()
        self.process = subprocess.Popen([binary, str(self.port)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert self.process.stdout.readline() == b"listening\n", self.process.stderr.read()

    def seen(self) -> dict[str, int]:
        """The requests that it has had, and the bytes of their bodies."""
        asked = subprocess.run(["curl", "-sS", "--max-time", "10", f"http://127.0.0.1:{self.port}/seen"], capture_output=True,
                               check=True)
        return json.loads(asked.stdout)

    def has_ended(self) -> bool:
        """Whether it has found a fault, or is about to end because of one: load.c may notice before it has ended."""
        try:
            self.process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            return False
        return True

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        self.process.communicate(timeout=10)


def checked(backend: Backend, command: list, requests: int, body_bytes: int, *, passed: int) -> dict:
    """Runs load.c, which checks every answer, and compares what the backend had: `passed` requests, each once, with
    `body_bytes` of bodies in all."""
    return checked_together(backend, [command], requests, body_bytes, passed=passed)[0]


def checked_together(backend: Backend, commands: list[list], requests: int, body_bytes: int, *, passed: int) -> list[dict]:
    """The same of several that run at once; `requests` are those of all of them."""
    before = backend.seen()
    running = [subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
               for command in commands]
    results, faults = [], ""
    for process in running:
        out, err = process.communicate()
        if process.returncode:
            faults += err[:2000]
        else:
            results.append(json.loads(out))
    if len(results) < len(running):
        # The backend ends where it cannot read a request, and the proxy's answer is then the smaller news.
        ended = backend.has_ended()
        raise Lie((backend.process.stderr.read().decode(errors="replace")[:2000] if ended else "") + faults)
    after = backend.seen()
    had = {name: after[name] - before[name] for name in after}
    answers = sum(result["requests"] for result in results)
    if answers != requests or had != {"requests": passed, "bytes": body_bytes}:
        raise Lie(f"{answers} answers to {requests} requests, and the backend had {had}")
    return results


# Options of `serve`: one event loop, no log, and limits that refuse nothing here.
UNLIMITED = ("--log", "off", "--workers", 1, "--limit-kept-keys", 100_000_000, "--limit-address-requests", 4096,
             "--limit-account-requests", 4096, "--limit-keepalive-requests", 100_000_000)

# Who calls: prepares the app `bench` and a key, and returns the options of load.c.
Caller = Callable[[Gateway, pathlib.Path], list[str]]


def with_key(scheme: str, key_id: str, secret: bytes) -> list[str]:
    return ["--scheme", scheme, "--key-id", key_id, "--secret", secret.hex()]


# Requests are signed before they are sent, and a gateway under valgrind on a busy machine takes minutes for them.
WINDOW = "300s"


def release(gateway: Gateway, _: pathlib.Path) -> list[str]:
    gateway.add_app("bench", window=WINDOW)
    key = gateway.add_release("bench")
    return with_key("message-signatures", key.key_id, decode_secret(key.secret))


def unknown(gateway: Gateway, folder: pathlib.Path) -> list[str]:
    """A key id that no release has; the app is there as for all others."""
    release(gateway, folder)
    return with_key("message-signatures", "r_AAAAAAAAAAAAAAAAAAAAAA", bytes(32))


def nobody(gateway: Gateway, folder: pathlib.Path) -> list[str]:
    """Signs nothing."""
    release(gateway, folder)
    return with_key("none", "", b"")


def legacy(scheme: str) -> Caller:
    def prepare(gateway: Gateway, _: pathlib.Path) -> list[str]:
        key_id, secret = "Zk3vQp81LmTn0aWd", "hUe7cXs2Rb9yKfJ4"
        gateway.add_app("bench", schemes=scheme, window=WINDOW)
        gateway.admin("release", "add", "bench", "--platform", "ios", "--version", "1.0", "--scheme", scheme,
                      "--key-id", key_id, "--secret", secret)
        return with_key(scheme, key_id, secret.encode())
    return prepare


def unknown_legacy(gateway: Gateway, folder: pathlib.Path) -> list[str]:
    """A key id that no release has, for a scheme whose answers are not signed."""
    legacy("auth-v1")(gateway, folder)
    return with_key("auth-v1", "AAAAAAAAAAAAAAAA", bytes(32))


def session(gateway: Gateway, folder: pathlib.Path, level: str = "session") -> list[str]:
    """A session of a device, which signed up and in as the command-line client does."""
    gateway.add_app("bench", require=level, registration="open", window=WINDOW)
    alice = Person(gateway, folder / "alice", app="bench").signs_up().logs_in()
    profile = pathlib.Path(alice.profile)
    token = re.search(r'keyid="(s_[^"]+)"', alice.run("request", "--dry-run", "/").out)[1]
    return [*with_key("message-signatures", token, request_key(vault(profile)[SESSION_ROOT])),
            "--release", alice.release["key_id"]]


def device(gateway: Gateway, folder: pathlib.Path) -> list[str]:
    """The same, whose device signs each request, too."""
    options = session(gateway, folder, "device")
    key = folder / "device.der"
    key.write_bytes(device_keys(folder / "alice/profile")[SIGNING_KEY])
    return [*options, "--device-key", str(key)]


@dataclass(frozen=True)
class Case:
    """A kind of request."""
    name: str
    caller: Caller = release
    # What signs it, for people.
    key: str = "a release's key"
    is_tls: bool = False
    # Bytes of the request's body, 0 for a GET, and of the answer's, 0 for the backend's usual 128.
    body: int = 0
    answer: int = 0
    # Whether each request has an Idempotency-Key of its own.
    is_keyed: bool = False
    connections: int = 64
    # The refusal that it gets, if it does not pass.
    refusal: str = ""
    # The addresses of the clients. One address has a budget of signed refusals and of wrong signatures.
    sources: int = 1
    # The requests of a round, as a share of the usual number: so that a round takes about a second.
    share: float = 1
    # The growth of its instructions at which script/instructions fails.
    most: float = 0.03

    @property
    def is_counted(self) -> bool:
        """Instructions are counted on one connection, so that cases that differ in that alone have one count."""
        return self.connections == 64

    def describe(self) -> str:
        parts = ["TLS" if self.is_tls else "plain", f"POST of {self.body} bytes" if self.body else "GET"]
        parts += [f"signed with {self.key}"]
        parts += [f"answer of {self.answer} bytes"] if self.answer else []
        parts += ["own Idempotency-Key"] if self.is_keyed else []
        parts += [f"refused as {self.refusal}"] if self.refusal else []
        return ", ".join([*parts, f"{self.connections} connection{'s' if self.connections > 1 else ''}"])


ALL = [
    Case("get"),
    Case("post", body=512),
    Case("post-keyed", body=512, is_keyed=True, share=0.15, most=0.1),
    Case("session-get", session, "a session's key"),
    Case("device-get", device, "a session's key and by its device", share=0.25),
    Case("form-md5", legacy("form-md5"), "form-md5", body=512),
    Case("auth-v1", legacy("auth-v1"), "auth-v1"),
    Case("sigv4", legacy("sigv4"), "sigv4"),
    Case("refused", unknown, "a key that no release has", refusal="unknown-key", sources=64),
    # The answers to these two are not signed.
    Case("refused-auth-v1", unknown_legacy, "auth-v1 and a key that no release has", refusal="unknown-key", sources=64),
    Case("unsigned", nobody, "nothing", refusal="unsigned"),
    Case("tls-get", is_tls=True),
    Case("tls-post", is_tls=True, body=512),
    Case("get-64k", answer=65_536, share=0.25),
    Case("post-64k", body=65_536, share=0.2),
    Case("get-1", connections=1, share=0.3),
    Case("get-512", connections=512),
    Case("post-keyed-512", body=512, is_keyed=True, connections=512, share=0.15),
]
CASES = {case.name: case for case in ALL}
# A proxy that refuses everything has this status; the gateway's refusals in ALL have the other.
FORBIDDEN, UNAUTHORIZED = 403, 401


class Stage:
    """The backend and a gateway that is prepared for one case; in it, `send` measures what it says."""

    def __init__(self, case: Case, folder: pathlib.Path, *, prefix: tuple[str, ...] = (), environment: dict[str, str] | None = None):
        """`prefix` is a command that runs the gateway, such as valgrind; it is prepared without."""
        self.case, self.backend = case, Backend()
        self.gateway = Gateway(
            folder / "gateway", "--upstream", f"http://127.0.0.1:{self.backend.port}", *UNLIMITED, *(() if case.is_tls else ("--tls", "off")),
            environment=environment)
        try:
            self.gateway.start()
            self.options = case.caller(self.gateway, folder)
            if prefix:
                self.gateway.stop()
                self.gateway.start(prefix=prefix, wait=120)
                self.gateway.inside = ()
        except BaseException:
            self.stop()
            raise

    def __enter__(self) -> "Stage":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        if self.gateway.process and self.gateway.process.poll() is None:
            self.gateway.stop()
        self.backend.stop()

    def send(self, requests: int, *, connections: int | None = None, port: int | None = None, status: int | None = None,
             source: int = 0) -> dict:
        """Sends requests to the gateway, or to another proxy on `port`, from the address numbered `source` and those behind
        it. Every answer was checked, and the backend had each request once, whole: or `Lie`."""
        case = self.case
        is_refused = bool(case.refusal)
        command = [LOAD, "--port", port or self.gateway.port, "--authority", f"127.0.0.1:{self.gateway.port}",
                   "--requests", requests, "--connections", min(connections or case.connections, requests), "--body", case.body,
                   "--answer", case.answer, *self.options]
        command += ["--keyed"] if case.is_keyed else []
        command += ["--sources", case.sources, "--source", source] if case.sources > 1 else []
        if status:
            command += ["--status", status]
        elif is_refused:
            command += ["--status", UNAUTHORIZED, "--contains", f'"{case.refusal}"']
        return checked(self.backend, [*command, "--tls"] if case.is_tls else command, requests,
                       0 if is_refused else requests * case.body, passed=0 if is_refused else requests)
