#!/usr/bin/env python3
"""What io_uring would save: CPU per request of a relay in Swift on epoll, of the same on io_uring, of nginx's
`proxy_pass` and of the gateway, with the same requests and the same backend, rounds in turn. The relay
forwards bytes (Tools/Benchmarks/Relay) and does a fixed amount of work for each request in place of the gateway's
checks. Every request and every answer is checked (load.c, backend.c).

Client, proxies and backend share all processors, as in script/bench, unless `--apart` gives the proxies one
of their own.

Usage: relay.py [--work NANOSECONDS] [--apart] [--rounds N] [--requests N] [--connections N] [--case NAME]
[--json FILE], after `script/bench --build-only`.
"""

import argparse
import contextlib
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

from bench import Comparison, system_calls
from cases import CASES, ROOT, Lie, Stage, reserve_port
from nginx import cpu

SOURCES, BINARY = ROOT / "Tools/Benchmarks/Relay", ROOT / ".build/bench/relay"
# The processors with --apart.
OTHERS, PROXIES = 0, 1
ENGINES = ("epoll", "epoll-late", "ring-receive", "ring-once", "ring")


def build() -> None:
    subprocess.run(["swiftc", "-O", "-wmo", "-swift-version", "6", "-I", SOURCES / "CRelay", "-o", BINARY,
                    *sorted(SOURCES.glob("*.swift"))], check=True)


def steps(nanoseconds: int) -> int:
    """The steps of the relay's work that take so long here."""
    said = subprocess.run([BINARY, "calibrate"], capture_output=True, text=True, check=True).stdout
    return round(nanoseconds / float(said))


class Relay:
    """A relay on one engine, a child of this process."""

    def __init__(self, engine: str, backend: int, work: int):
        self.port = reserve_port()
        command = [BINARY, engine, *map(str, (self.port, backend, work))]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE)
        if self.process.stdout.readline() != b"listening\n":
            sys.exit(f"relay: {engine} does not start")

    def stop(self) -> None:
        self.process.terminate()
        self.process.communicate(timeout=10)


def restrict(pid: int, processor: int) -> None:
    for thread in pathlib.Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(thread.name), {processor})


def preemptions(pid: int) -> int:
    """How often the threads of a process were replaced by others though they could have run on."""
    statuses = [(thread / "status").read_text() for thread in pathlib.Path(f"/proc/{pid}/task").iterdir()]
    return sum(int(status.split("nonvoluntary_ctxt_switches:")[1]) for status in statuses)


def middle(values: list[float]) -> list[float]:
    """The median, and its interval of 95 % by order statistics."""
    ordered = sorted(values)
    low = max(int((len(ordered) - 1.96 * len(ordered) ** 0.5) / 2), 0)
    return [round(each, 3) for each in (statistics.median(ordered), ordered[low], ordered[-1 - low])]


def measure(options: argparse.Namespace, stack: contextlib.ExitStack) -> dict:
    folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(dir=ROOT / ".build/bench")))
    stage = stack.enter_context(Stage(CASES[options.case], folder))
    work = steps(options.work)
    proxy = Comparison(stage, folder)
    stack.callback(proxy.nginx.stop)
    sides = {"nginx": (proxy.nginx.worker, proxy.port), "gateway": (stage.gateway.process.pid, None)}
    for engine in ENGINES:
        relay = Relay(engine, stage.backend.port, work)
        stack.callback(relay.stop)
        sides[engine] = relay.process.pid, relay.port
    if options.apart:
        for pid, _ in sides.values():
            restrict(pid, PROXIES)
    meters = {"proxy": cpu, "backend": lambda _: cpu(stage.backend.process.pid), "preempted": preemptions}
    samples: dict[str, dict[str, list[float]]] = {who: {meter: [] for meter in meters} for who in sides}
    order, chance = list(sides), random.Random(0)

    def send(who: str) -> dict:
        return stage.send(options.requests, port=sides[who][1], connections=options.connections)

    for round_ in range(options.rounds + 1):
        chance.shuffle(order)
        for who in order:
            pid = sides[who][0]
            before = [read(pid) for read in meters.values()]
            send(who)
            # The first round warms up, and does not count.
            for (meter, read), was in zip(meters.items(), before, strict=True) if round_ else ():
                samples[who][meter].append((read(pid) - was) / options.requests)
    calls = {who: system_calls(pid, lambda who=who: send(who)) for who, (pid, _) in sides.items()}
    return {who: summary(samples, who, calls[who]) for who in sides}


def summary(samples: dict, who: str, calls: float) -> dict:
    """Ratios and differences are those within each round."""
    taken, epoll, nginx = ([each * 1e6 for each in samples[side]["proxy"]]
                           for side in (who, "epoll", "nginx"))
    return {
        "median_us": round(statistics.median(taken), 2),
        "least_us": round(min(taken), 2),
        "system_calls": round(calls, 2),
        "preempted": round(statistics.median(samples[who]["preempted"]), 2),
        "backend_us": round(statistics.median(samples[who]["backend"]) * 1e6, 2),
        "of_nginx": middle([ours / theirs for ours, theirs in zip(taken, nginx, strict=True)]),
        "of_epoll": middle([ours / theirs for ours, theirs in zip(taken, epoll, strict=True)]),
        "less_than_epoll_us": middle([theirs - ours for ours, theirs in zip(taken, epoll, strict=True)])}


def spread(values: list[float]) -> str:
    return "{:.2f} ({:.2f} to {:.2f})".format(*values)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=int, default=0, help="of the relay for each request, nanoseconds")
    parser.add_argument("--apart", action="store_true", help="the proxies have a processor of their own")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--requests", type=int, default=20_000, help="of each round")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--case", default="get", help="of script/bench, without TLS")
    parser.add_argument("--json", type=pathlib.Path, help="writes the figures there")
    options = parser.parse_args()
    build()
    if options.apart:
        # Load and backend inherit it.
        restrict(os.getpid(), OTHERS)
    with contextlib.ExitStack() as stack:
        try:
            rows = measure(options, stack)
        except Lie as lie:
            sys.exit(f"relay: {lie}")
    place = "a processor of the proxies' own" if options.apart else "shared processors"
    print(f"{options.connections} connections, {options.work} ns of work in the relays, {place}, "
          f"{options.rounds} rounds. CPU in µs, system calls and preemptions per request; the backend's CPU")
    print(f"{'':14}{'median':>7}{'least':>7}{'calls':>7}{'preempt':>8}{'backend':>8}  "
          f"{'÷ nginx':22}{'÷ epoll':22}less than epoll")
    for who, row in rows.items():
        print(f"{who:14}{row['median_us']:7.1f}{row['least_us']:7.1f}{row['system_calls']:7.2f}"
              f"{row['preempted']:8.2f}{row['backend_us']:8.1f}  {spread(row['of_nginx']):22}"
              f"{spread(row['of_epoll']):22}{spread(row['less_than_epoll_us'])}")
    if options.json:
        options.json.write_text(json.dumps({**vars(options), "json": None, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
