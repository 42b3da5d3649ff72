#!/usr/bin/env python3
"""CPU per request of the gateway and of the replay guard's server, and requests a second, with the replay file, Redis and
PostgreSQL: the same signed requests on 64 connections to one event loop, rounds in turn. Every request and every answer is checked (load.c, backend.c).

Usage: guards.py [--rounds N] [--requests N] [--connections N], after `script/bench --build-only`. Needs redis-server and PostgreSQL, whose data are
in /tmp. `script/bench cluster` measures the same.
"""

import argparse
import contextlib
import dataclasses
import pathlib
import statistics
import tempfile

from cases import CASES, ROOT, Stage
from meters import CPUMeter, repeated
from postgres import Postgres
from redis import RedisServer


def measured(rounds: int, requests: int, connections: int = 64) -> list[dict]:
    """Of each guard the medians: microseconds of CPU for each request of the gateway and of its server, and requests a second."""
    case = dataclasses.replace(CASES["get"], connections=connections)
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
        stages, meters = {}, {}
        for name, (environment, pids) in guards.items():
            (folder / name).mkdir()
            stages[name] = stage = stack.enter_context(Stage(case, folder / name, environment=environment))
            meters[name] = CPUMeter({"gateway": lambda process=stage.gateway.process: [process.pid], "server": pids})
        samples = {name: [] for name in guards}
        for round_ in range(rounds + 1):
            for name, stage in stages.items():
                result, taken = repeated(lambda stage=stage, name=name: meters[name].during(lambda: stage.send(requests)), name)
                # The first round warms up, and does not count.
                if round_:
                    samples[name].append((*(taken[part] / requests * 1e6 for part in ("gateway", "server")), result["per_second"]))
    rows = []
    for name, sample in samples.items():
        gateway, server, served = (statistics.median(column) for column in zip(*sample, strict=True))
        rows.append({"guard": name, "gateway_us": round(gateway, 2), "server_us": round(server, 2), "per_second": round(served)})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=20_000, help="of each round")
    parser.add_argument("--connections", type=int, default=64)
    options = parser.parse_args()
    rows = measured(options.rounds, options.requests, options.connections)
    print(f"{'':10}{'gateway':>12}{'its server':>14}{'requests':>14}   medians of {options.rounds} rounds of {options.requests}")
    for row in rows:
        print(f"{row['guard']:10}{row['gateway_us']:9.1f} µs{row['server_us']:11.1f} µs{row['per_second']:12,.0f}/s")


if __name__ == "__main__":
    main()
