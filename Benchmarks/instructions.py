#!/usr/bin/env python3
"""Compares the gateway's instructions per request with the figures in instructions.json, so that no change
makes a request dearer unseen. Fails if one grew by more than 3 %, or 10 % for a keyed one, whose work in the
database varies with the database.

One connection at a time: then the number of turns of the event loop, and of waits, does not depend on the
machine's load. libcrypto is left out, because its code depends on the processor; SQLite counts only where a
request uses it. The backend must have seen each request once.

Usage: instructions.py [--update] [--requests N]. `--update` writes the new figures to the file.
script/instructions builds what it needs and calls it.
"""

import argparse
import json
import pathlib
import sys
import tempfile
from dataclasses import dataclass

from bench import ROOT
from profile import instructions_by_library, record

KEPT = ROOT / "Benchmarks/instructions.json"


@dataclass(frozen=True)
class Case:
    """A kind of request, with the fields that `record` reads."""
    body: int = 0
    keyed: bool = False
    tls: bool = False
    # The growth at which it fails.
    most: float = 0.03


CASES = {
    "GET": Case(),
    "POST 512 B": Case(body=512),
    "keyed POST 512 B": Case(body=512, keyed=True, most=0.1),
    "TLS, GET": Case(tls=True),
    "TLS, POST 512 B": Case(body=512, tls=True),
}


def measure(case: Case, requests: int) -> int:
    """Instructions of one request."""
    if case.keyed:
        requests //= 4
    with tempfile.TemporaryDirectory(dir=ROOT / ".build/bench") as folder:
        counts = instructions_by_library(record(pathlib.Path(folder), case, requests=requests, connections=1))
    left_out = ("libcrypto",) if case.keyed else ("libcrypto", "libsqlite3")
    return round(sum(count for name, count in counts.items() if not name.startswith(left_out)) / requests)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--update", action="store_true", help="write the figures to instructions.json")
    parser.add_argument("--requests", type=int, default=3_000, help="of each case; a keyed one has a quarter")
    options = parser.parse_args()
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    now = {name: measure(case, options.requests) for name, case in CASES.items()}
    print(f"{'instructions of a request':28}{'kept':>10}{'now':>10}{'change':>9}")
    grown = []
    for name, count in now.items():
        before = kept.get(name)
        change = "new" if before is None else f"{count / before - 1:+.1%}"
        print(f"{name:28}{before or '':>10}{count:>10}{change:>9}")
        if before is None or count > before * (1 + CASES[name].most):
            grown.append(name)
    if options.update:
        KEPT.write_text(json.dumps(now, indent=1) + "\n")
    elif grown:
        sys.exit(f"instructions: {', '.join(grown)}: grown beyond {KEPT.relative_to(ROOT)}. "
                 "If that is meant, run script/instructions --update")


if __name__ == "__main__":
    main()
