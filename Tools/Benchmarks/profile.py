#!/usr/bin/env python3
"""Counts the gateway's instructions with callgrind. Runs on the same machine agree within 1 % if its load is
the same; on an idle machine a request takes up to 4 % more than on a busy one, because fewer requests share
a turn of the event loop.

Usage: profile.py [--case NAME]. Prints user-space instructions per request, by library and by function; it
does not see the kernel's share, which is larger. script/profile calls it.
"""

import argparse
import collections
import pathlib
import re
import subprocess
import tempfile

from bench import chosen
from cases import CASES, ROOT, Case, Stage

REQUESTS = 5_000
# Few requests at once: under callgrind a request takes about fifty times as long, and most of many
# concurrent requests would wait for another turn of the loop, as they otherwise do not.
CONNECTIONS = 2
# Requests from one address in a case of refusals, and the addresses that a run has at most.
SIGNED_REFUSALS, MOST_SOURCES = 500, 100


def record(folder: pathlib.Path, case: Case, *, requests: int = REQUESTS, connections: int = CONNECTIONS) -> pathlib.Path:
    """Counts `requests` requests after the same number of warm-up requests, and returns callgrind's file."""
    out = folder / "callgrind.out"
    valgrind = ("valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={out}")
    with Stage(case, folder, prefix=valgrind) as stage:
        def count(state: str) -> None:
            subprocess.run(["callgrind_control", "-i", state, str(stage.gateway.process.pid)], check=True, capture_output=True)

        def send(*, first_source: int) -> None:
            """An address has 1,000 signed refusals at once, and then so many a second: within the former, the count does not
            depend on the machine's speed."""
            parts = -(-requests // SIGNED_REFUSALS) if case.sources > 1 else 1
            for part in range(parts):
                stage.send(requests // parts, connections=connections, source=first_source + part * connections)

        send(first_source=0)
        count("on")
        send(first_source=MOST_SOURCES)
        count("off")
    return out


def functions_of(out: pathlib.Path) -> list[tuple[int, str, str]]:
    """Instructions, function and library of each function in callgrind's file."""
    text = subprocess.run(["callgrind_annotate", "--auto=no", "--threshold=100", out], check=True, capture_output=True,
                          text=True).stdout
    # A line without the name of an object file belongs to the binary itself.
    lines = re.findall(r"^ *([\d,]+) \([ \d.]+%\)  [^:\n]+:(.*?)(?: \[(.*)\])?$", text, re.MULTILINE)
    return [(int(count.replace(",", "")), name, pathlib.Path(library).name or "countersign") for count, name, library in lines]


def instructions_by_library(out: pathlib.Path) -> collections.Counter:
    libraries = collections.Counter()
    for count, _, library in functions_of(out):
        libraries[library] += count
    return libraries


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", default="get", metavar="NAME", help=", ".join(CASES))
    options = parser.parse_args()
    libraries, functions = collections.Counter(), collections.Counter()
    with tempfile.TemporaryDirectory(dir=ROOT / ".build/bench") as folder:
        out = record(pathlib.Path(folder), chosen([options.case], [])[0])
        for count, name, library in functions_of(out):
            libraries[library] += count / REQUESTS
            functions[name] += count / REQUESTS
    total = sum(libraries.values())
    print(f"{total:,.0f} user-space instructions per request")
    for name, count in libraries.most_common(6):
        print(f"{count:9,.0f}  {name}")
    print()
    names = subprocess.run(["swift", "demangle", "--simplified"], input="\n".join(functions), capture_output=True, text=True,
                           check=True).stdout.split("\n")
    for name, count in sorted(zip(names, functions.values(), strict=False), key=lambda pair: -pair[1])[:30]:
        print(f"{count:9,.0f}  {name[:110]}")


if __name__ == "__main__":
    main()
