#!/usr/bin/env python3
"""Compares the gateway's instructions per request with the figures in instructions.json, so that no change
makes a request dearer unseen. Fails if one grew by more than 3 %, or 10 % for a keyed one, whose work in the
database varies with the database.

One connection at a time: then the number of turns of the event loop, and of waits, does not depend on the
machine's load. libcrypto is left out, because its code depends on the processor; SQLite counts only where a
request uses it, and libsodium not for a refusal: the signature of the answer is by far the largest part, and
would hide the rest. Every request and answer is checked (cases.py).

Usage: instructions.py [--case NAME]... [--update] [--requests N]. `--update` writes the new figures to the
file. script/instructions builds what it needs and calls it.
"""

import argparse
import json
import pathlib
import sys
import tempfile

from bench import chosen
from cases import CASES, ROOT, Case, Lie
from profile import instructions_by_library, record

KEPT = ROOT / "Tools/Benchmarks/instructions.json"
# The least number of requests of a case, and the least instructions of all of them together: the work of timers
# counts, too, and should not show. What happens once a minute takes up to two million.
LEAST_REQUESTS, LEAST_INSTRUCTIONS = 500, 150_000_000
# How often a case that seems to have grown is counted: what a timer does in the meantime can only add to a count.
ATTEMPTS = 3


def measure(case: Case, requests: int, kept: int | None) -> int:
    """Instructions of one request; `kept` tells how many a request is expected to take."""
    return instructions(case, max(round(requests * min(case.share * 2, 1)), LEAST_REQUESTS, LEAST_INSTRUCTIONS // kept if kept else 0))


def instructions(case: Case, requests: int) -> int:
    with tempfile.TemporaryDirectory(dir=ROOT / ".build/bench") as folder:
        counts = instructions_by_library(record(pathlib.Path(folder), case, requests=requests, connections=1))
    left_out = ("libcrypto", *(() if case.is_keyed else ("libsqlite3",)), *(("libsodium",) if case.refusal else ()))
    return round(sum(count for name, count in counts.items() if not name.startswith(left_out)) / requests)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", action="append", metavar="NAME", help="count this one; may be repeated")
    parser.add_argument("--update", action="store_true", help="write the figures to instructions.json")
    parser.add_argument("--requests", type=int, default=2_000, help="of each case; costly ones have fewer")
    parser.add_argument("--trial", action="store_true", help="count a few requests, and demand that half the figure is found exceeded")
    options = parser.parse_args()
    counted = [case for case in CASES.values() if case.is_counted]
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    if options.trial:
        # So few requests show no growth of 3 %, but one to the double they must.
        case = chosen(options.case, counted)[0]
        found = instructions(case, 50)
        print(f"{case.name}: {found} instructions, {kept[case.name]} kept")
        sys.exit(not found > kept[case.name] / 2 * (1 + case.most))
    # script/steps shows lines with this beginning in CI's log.
    print(f"measured: {'instructions of a request':26}{'kept':>10}{'now':>10}{'change':>9}", flush=True)
    now, grown = {}, []
    for case in chosen(options.case, counted):
        before = kept.get(case.name)
        for _ in range(ATTEMPTS):
            try:
                count = measure(case, options.requests, before)
            except Lie as lie:
                sys.exit(f"instructions: {case.name}: {lie}")
            change = "new" if before is None else f"{count / before - 1:+.1%}"
            print(f"measured: {case.name:26}{before or '':>10}{count:>10}{change:>9}", flush=True)
            now[case.name] = min(count, now.get(case.name, count))
            if before is None or count <= before * (1 + case.most):
                break
        else:
            grown.append(f"{case.name} ({change})")
        if before is None:
            grown.append(f"{case.name} (new)")
    if options.update:
        # In the order of the cases, without those that are no more.
        figures = kept | now
        KEPT.write_text(json.dumps({case.name: figures[case.name] for case in counted if case.name in figures}, indent=1) + "\n")
    elif grown:
        sys.exit(f"instructions: {', '.join(grown)}: grown beyond {KEPT.relative_to(ROOT)}. "
                 "If that is meant, run script/instructions --update")


if __name__ == "__main__":
    main()
