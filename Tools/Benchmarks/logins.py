"""Sign-ups, logins and refreshes at real gateways: the steps of `countersign bench clients`, each sent by load.c when the clients have
computed it, so that their work is not measured."""

import itertools
import json
import pathlib
import struct
import subprocess
import tempfile

from bearer import PREFIX
from cases import LOAD, Lie, checked_together
from meters import repeated
from nodes import HOST
from products import BINARY
from sites import CONNECTIONS, Site

# The steps, and what is measured as one.
STEPS = {"registration/start": "signup", "registration/finish": "signup", "login/start": "login", "login/finish": "login",
         "token": "refresh"}


class Clients:
    """Clients of an app, which sign up, sign in and renew their sessions, all of them one step at a time."""

    def __init__(self, site: Site, count: int, first: int = 0):
        self.site, self.count = site, count
        self.process = subprocess.Popen(
            [BINARY, "bench", "clients", "--count", str(count), "--first", str(first), "--app", "demo", "--release", site.key.key_id],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def bodies(self) -> list[bytes]:
        """Of the requests of the next step."""
        lines = [self.process.stdout.readline() for _ in range(self.count)]
        if not lines[-1]:
            raise Lie(self.process.communicate()[1].decode(errors="replace"))
        return [line.rstrip(b"\n") for line in lines]

    def take(self, answers: list[bytes]) -> None:
        """A line for each; the line breaks of JSON mean nothing."""
        try:
            self.process.stdin.write(b"".join(answer.replace(b"\n", b" ") + b"\n" for answer in answers))
            self.process.stdin.flush()
        except BrokenPipeError as error:
            raise Lie(self.process.communicate()[1].decode(errors="replace")) from error

    def end(self) -> None:
        """Each of them has got what the last step requires, or `Lie`."""
        _, err = self.process.communicate(timeout=60)
        if self.process.returncode:
            raise Lie(err.decode(errors="replace"))

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


def measured(site: Site, count: int, first: int = 0) -> dict[str, dict[str, float]]:
    """Of sign-ups, logins and refreshes: microseconds of CPU by group of processes, and how many a second. The two requests of a flow
    reach different nodes, if there are several. The accounts have numbers from `first`. Where a request had a 503, it begins again with
    other accounts."""
    attempts = itertools.count()
    return repeated(lambda: measured_once(site, count, first + next(attempts) * count), "sign-ups and logins")


def measured_once(site: Site, count: int, first: int) -> dict[str, dict[str, float]]:
    figures: dict[str, dict[str, float]] = {}
    clients = Clients(site, count, first)
    try:
        for number, (step, name) in enumerate(STEPS.items()):
            answers, seconds, taken = sent(site, step, clients.bodies(), shift=number)
            clients.take(answers)
            row = figures.setdefault(name, {"seconds": 0})
            row["seconds"] += seconds
            for group, used in taken.items():
                row[f"{group}_us"] = row.get(f"{group}_us", 0) + used / count * 1e6
        clients.end()
    finally:
        clients.stop()
    for row in figures.values():
        row["per_second"] = count / row.pop("seconds")
    return figures


def sent(site: Site, step: str, bodies: list[bytes], *, shift: int) -> tuple[list[bytes], float, dict[str, float]]:
    """The answers to the requests with these bodies, in their order, each of which is a success; how long they took, and the CPU."""
    nodes = site.nodes
    share = -(-len(bodies) // len(nodes))
    parts = [bodies[start:start + share] for start in range(0, len(bodies), share)]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        commands = []
        for index, part in enumerate(parts):
            fields = [("content-type", "application/json")]
            requests = [site.key.request("POST", f"{PREFIX}/{step}", body, fields=fields) for body in part]
            (folder / f"requests-{index}").write_bytes(b"".join(framed(request) for request in requests))
            commands.append([
                LOAD, "--port", nodes[(index + shift) % len(nodes)].port, "--authority", HOST, "--requests", len(part), "--connections",
                min(len(part), CONNECTIONS // len(nodes)), "--prepared", folder / f"requests-{index}", "--answers",
                folder / f"answers-{index}"])
        # None of these reaches the backend.
        results, taken = site.meter().during(lambda: checked_together(site.backend, commands, len(bodies), 0, passed=0))
        answers = [answer for index in range(len(parts)) for answer in unframed((folder / f"answers-{index}").read_bytes())]
    return answers, max(result["seconds"] for result in results), taken


def framed(message: bytes) -> bytes:
    return struct.pack("<I", len(message)) + message


def unframed(data: bytes) -> list[bytes]:
    messages, at = [], 0
    while at < len(data):
        [length] = struct.unpack_from("<I", data, at)
        messages.append(data[at + 4:at + 4 + length])
        at += 4 + length
    return messages
