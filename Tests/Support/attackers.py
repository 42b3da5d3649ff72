"""Attackers and an ordinary client, as processes of Tools/Benchmarks/Fairness: flood.c sends as fast as it can,
or as slowly as requested, and counts the results; probe.c sends requests at a rate, and measures the
answers.
"""

import json
import pathlib
import struct
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field

import processes
from signing import PairKey, ReleaseKey

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = ROOT / ".build/bench"
ATTACKER, ORDINARY = "127.0.0.2", "127.0.0.3"


@dataclass
class Target:
    """A server, and what is known of it: the attacker has an app and so its keys."""

    port: int
    is_tls: bool
    key: ReleaseKey
    form_key: str = ""
    pairs: dict[str, PairKey] = field(default_factory=dict)

    @property
    def authority(self) -> str:
        return self.key.authority


@dataclass(frozen=True)
class Flood:
    """One attacking process: its requests, and flood.c's options."""

    records: Callable[[Target], list[bytes]] | None
    options: str = ""
    connections: int = 1
    per_record: int = 1
    address: str = ATTACKER


@dataclass(frozen=True)
class Attack:
    name: str
    summary: str
    floods: tuple[Flood, ...]
    # What the attackers must have achieved together, in two seconds or more.
    least: dict[str, int]
    # What the server is started with, and which policy its app has.
    options: tuple[object, ...] = ()
    policy: dict[str, str] = field(default_factory=dict)
    descriptors: int = 0
    # Whether nginx has the same thing to lose.
    has_nginx: bool = True
    transports: tuple[str, ...] = ("plain", "tls")
    # What the server may grow by while it is attacked; what it does by default, docs/operate/limits.md says.
    most_memory_mib: int = 128
    # What refusals of strangers may add to the log in 30 s; more where many addresses send them.
    most_log_bytes: int = 256 << 10
    # Which key pair the ordinary client signs with; none: the release's shared secret.
    pair: str = ""


def build_tools() -> None:
    """Compiles the two clients where their sources are newer."""
    TOOLS.mkdir(parents=True, exist_ok=True)
    sources = ROOT / "Tools/Benchmarks/Fairness"
    newest = max(path.stat().st_mtime for path in sources.iterdir())
    for name in ("flood", "probe"):
        made = TOOLS / name
        if made.exists() and made.stat().st_mtime > newest:
            continue
        # Tests that run in parallel may each compile: the last one writes the same file again.
        fresh = TOOLS / f"{name}.{pathlib.Path('/proc/self').resolve().name}"
        subprocess.run(
            [
                "cc",
                "-O2",
                "-D_GNU_SOURCE",
                "-Wall",
                "-Wno-deprecated-declarations",
                "-o",
                fresh,
                sources / f"{name}.c",
                "-lssl",
                "-lcrypto",
            ],
            check=True,
        )
        fresh.rename(made)


def write_records(path: pathlib.Path, records: list[bytes]) -> pathlib.Path:
    with open(path, "wb") as file:
        for record in records:
            file.write(struct.pack("<I", len(record)) + record)
    return path


class Attackers:
    """The running processes of an attack; `stop` returns what they achieved together."""

    def __init__(self, attack: Attack, target: Target, folder: pathlib.Path, seconds: int, prefix: tuple[str, ...] = ()):
        self.processes = []
        for index, flood in enumerate(attack.floods):
            command = [
                *prefix,
                TOOLS / "flood",
                "--port",
                target.port,
                "--from",
                flood.address,
                "--connections",
                flood.connections,
                "--seconds",
                seconds,
                "--per-record",
                flood.per_record,
                *flood.options.split(),
            ]
            if flood.records:
                command += ["--requests", write_records(folder / f"flood-{index}", flood.records(target))]
            # The pieces of a handshake are bytes like any others, and go out as they are.
            command += ["--tls"] if target.is_tls and "--raw" not in flood.options else []
            self.processes.append(processes.start([*map(str, command)], stdout=subprocess.PIPE, text=True))

    def __enter__(self) -> "Attackers":
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()

    def stop(self) -> dict[str, float]:
        total: dict[str, float] = {}
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            text, _ = process.communicate(timeout=60)
            assert process.returncode == 0, f"an attacker ended with {process.returncode}: {text}"
            for name, value in json.loads(text).items():
                total[name] = max(total.get(name, 0), value) if name == "seconds" else total.get(name, 0) + value
        return total


class Probe:
    """The ordinary client: sends the requests it is given at `rate` a second."""

    def __init__(
        self,
        port: int,
        is_tls: bool,
        requests: list[bytes],
        path: pathlib.Path,
        rate: int,
        *options: object,
        prefix: tuple[str, ...] = (),
        address: str = ORDINARY,
    ):
        command = [
            *prefix,
            TOOLS / "probe",
            "--port",
            port,
            "--from",
            address,
            "--rate",
            rate,
            "--requests",
            write_records(path, requests),
            *options,
            *(["--tls"] if is_tls else []),
        ]
        self.process = processes.start([*map(str, command)], stdout=subprocess.PIPE, text=True)

    def result(self, timeout: float) -> dict:
        try:
            text, _ = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise
        return json.loads(text)


def ordinary_requests(key: ReleaseKey, count: int) -> list[bytes]:
    bodies = (b"", b"x" * 512, b"", b"x" * (16 << 10))
    return [
        key.request("POST" if body else "GET", f"/orders?n={index}", body)
        for index, body in ((index, bodies[index % 4]) for index in range(count))
    ]
