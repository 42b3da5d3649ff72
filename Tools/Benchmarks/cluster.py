#!/usr/bin/env python3
"""What several gateways over PostgreSQL and Redis cost, beside one with SQLite and the replay file, in one run:
CPU for each signed GET and keyed POST with one, two and three nodes; the replay guards; sign-ups, logins and refreshes;
sessions, from a thousand to a million in the database. Every request and answer is checked: one that is lost, repeated,
changed or refused ends the measurement, and a round in which a shared guard refused one with 503 is repeated. All
processes share this machine's cores, so that its rates are those of all of them together, and those of two or three
nodes say nothing about machines of their own: there, CPU for each request tells what each needs.

Prints the tables of docs/scale.md; progress is on standard error. Takes up to ten minutes, above all to make the
million sessions. PostgreSQL's and Redis' data are in /tmp.
"""

import argparse
import contextlib
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable

import guards
import logins
import scale
import sessions
from cases import ROOT, Lie
from sites import Servers, Site, rates

BODY = 512
IDLE_SECONDS = 3
# The numbers of a site's accounts begin at the number of its nodes times this.
ACCOUNTS_PER_SITE = 1_000_000


def medians(samples: list[dict[str, float]]) -> dict[str, float]:
    return {name: statistics.median(sample[name] for sample in samples) for name in samples[0]}


def requests_of(site: Site, rounds: int, requests: int, keyed: int) -> dict[str, dict[str, float]]:
    """The medians of GET and keyed POST."""
    row = {}
    work: dict[str, Callable[[], list[dict]]] = {
        "get": lambda: site.send(requests), "keyed": lambda: site.send(keyed, body=BODY, is_keyed=True)}
    for name, send in work.items():
        # The first round warms up, and does not count.
        samples = [rates(*site.measured(send, name)) for _ in range(rounds + 1)]
        row[name] = medians(samples[1:])
    return row


def idle(site: Site, seconds: float) -> dict[str, float]:
    """Milliseconds of CPU in a second without requests."""
    _, taken = site.meter().during(lambda: time.sleep(seconds))
    return {name: used / seconds * 1e3 for name, used in taken.items()}


def sites_of(folder: pathlib.Path, servers: Servers, options) -> tuple[list[dict], float]:
    """One row for the gateway with SQLite and for each number of nodes, and the bytes of an entry in Redis."""
    rows, entry = [], 0.0
    short = options.short

    def row(site: Site, name: str, store: str, nodes: int, clients: int) -> dict:
        options.tell(f"{name}: requests")
        row = {"name": name, "store": store, "nodes": nodes, "idle_ms": idle(site, 0.5 if short else IDLE_SECONDS)}
        row |= requests_of(site, options.rounds, options.requests, options.keyed)
        if clients:
            options.tell(f"{name}: sign-ups, logins and refreshes")
            row |= logins.measured(site, clients, first=nodes * ACCOUNTS_PER_SITE)
        return row

    with Site(folder / "sqlite", None) as site:
        rows.append(row(site, "one gateway, SQLite, replay file", "sqlite", 1, options.clients))
    with Site(folder / "postgres", servers, nodes=3) as site:
        for count, text in ((1, "one node"), (2, "two nodes"), (3, "three nodes")):
            site.keep(count)
            before = servers.redis_bytes()
            keys = servers.redis.keys()
            rows.append(row(site, text, "postgres", count, 0 if count == 2 else options.clients))
            if count == 1:
                entry = (servers.redis_bytes() - before) / max(1, servers.redis.keys() - keys)
    return rows, entry


def machine() -> str:
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")
    count = os.cpu_count()
    return f"{count} cores ({model}), shared by gateways, PostgreSQL, Redis, backend and load"


def main() -> None:
    parser = argparse.ArgumentParser(prog="script/bench cluster", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=20_000, help="of each round of GET")
    parser.add_argument("--keyed", type=int, default=3_000, help="of each round of keyed POST")
    parser.add_argument("--clients", type=int, default=2_000, help="that sign up, sign in and renew their sessions")
    parser.add_argument("--sessions", type=int, default=1_000_000, help="the most in a database; the least are 1,000")
    parser.add_argument("--short", action="store_true", help="few of everything, to find out that each part works")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write all figures to it")
    parser.add_argument("--update", type=pathlib.Path, metavar="FILE", help="put the tables into docs/scale.md")
    options = parser.parse_args()
    if options.short:
        options.rounds, options.requests, options.keyed, options.clients, options.sessions = 1, 1_200, 300, 60, 3_000
    most = max(1_000, options.sessions)
    # The one between is as many times the first as the last is of it.
    sizes = sorted({1_000, round((most / 1_000) ** 0.5) * 1_000, most})
    began = time.monotonic()
    options.tell = lambda text: print(f"bench: {time.monotonic() - began:5.0f} s: {text}", file=sys.stderr, flush=True)
    if options.update:
        scale.page_with_tables(options.update)
    figures: dict = {"machine": machine()}
    try:
        with tempfile.TemporaryDirectory(dir=ROOT / ".build/bench") as name, contextlib.ExitStack() as stack:
            folder = pathlib.Path(name)
            servers = stack.enter_context(Servers())
            figures["sites"], figures["redis_bytes"] = sites_of(folder, servers, options)
            options.tell("replay guards")
            figures["guards"] = guards.measured(options.rounds, options.requests // 2)
            figures["sessions"] = sessions.measured(
                folder / "sessions", servers, sizes, rounds=options.rounds, requests=options.requests, tell=options.tell)
    except Lie as lie:
        sys.exit(f"bench: cluster: {lie}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    if options.update:
        scale.update(options.update, figures)
    print(scale.tables(figures))
    print("\nRates are those of all processes on the cores above: of nodes on machines of their own they say nothing.")
    options.tell("done")


if __name__ == "__main__":
    main()
