#!/usr/bin/env python3
"""CPU per request of the gateway and of the replay guard's server, and requests a second, with the replay file, Redis and PostgreSQL: the same
signed requests on 64 connections to one event loop, rounds in turn. Every request and every answer is checked (load.c, backend.c).

Usage: guards.py [--rounds N] [--requests N] [--connections N], after `script/bench --build-only`. Needs redis-server and PostgreSQL, whose data are
in /tmp.
"""

import argparse
import contextlib
import dataclasses
import pathlib
import statistics
import tempfile
from collections.abc import Iterable

from cases import CASES, ROOT, Stage
from nginx import cpu
from postgres import Postgres
from redis import RedisServer


def times(pids: Iterable[int]) -> dict[int, float]:
    """The CPU of the processes that are there, in seconds."""
    found = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            found[pid] = cpu(pid)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=20_000, help="of each round")
    parser.add_argument("--connections", type=int, default=64)
    options = parser.parse_args()
    case = dataclasses.replace(CASES["get"], connections=options.connections)
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(dir=ROOT / ".build/bench")))
        redis = stack.enter_context(RedisServer())
        database = Postgres()
        stack.callback(database.remove)
        guards = {
            "file": ({}, lambda: []),
            "redis": ({"COUNTERSIGN_REPLAY": redis.address}, lambda: [redis.process.pid]),
            "postgres": ({"COUNTERSIGN_REPLAY": "postgres", "COUNTERSIGN_STORE": database.create("bench")}, database.pids),
        }
        stages = {}
        for name, (environment, _) in guards.items():
            (folder / name).mkdir()
            stages[name] = stack.enter_context(Stage(case, folder / name, environment=environment))
        samples = {name: [] for name in guards}
        for round_ in range(options.rounds + 1):
            for name, stage in stages.items():
                before = times([stage.gateway.process.pid]), times(guards[name][1]())
                result = stage.send(options.requests)
                # Processes that came and went meanwhile are those of the gateway's looks, once a second.
                taken = [sum(end - part[pid] for pid, end in times(part).items()) for part in before]
                # The first round warms up, and does not count.
                if round_:
                    samples[name].append((*(each / options.requests * 1e6 for each in taken), result["per_second"]))
    print(f"{'':10}{'gateway':>12}{'its server':>14}{'requests':>14}   medians of {options.rounds} rounds of {options.requests}")
    for name, rows in samples.items():
        gateway, server, served = (statistics.median(column) for column in zip(*rows, strict=True))
        print(f"{name:10}{gateway:9.1f} µs{server:11.1f} µs{served:12,.0f}/s")


if __name__ == "__main__":
    main()
