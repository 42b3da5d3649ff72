#!/usr/bin/env python3
"""Counts the instructions of one judgement in process, for each kind of request: the whole gate, from a parsed
request to an admitted caller, with its entry in a replay file; no sockets. callgrind counts, so that the load of
the machine makes no difference. What libcrypto takes for SHA-256 and signatures is a column of its own, because
its code depends on the processor.

Usage: verdicts.py [--functions N] [KIND...]. Needs script/setup.
"""

import argparse
import collections
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Not by way of countersign, which starts it: callgrind does not follow that.
BINARY = ROOT / ".build/release/countersign-lab"
KINDS = ("get", "session", "post", "ecdsa-p256", "ed25519", "form-md5", "auth-v1", "auth-v2", "auth-v4", "sigv4")
ROUNDS = 5
REQUESTS = ROUNDS * 100
# callgrind fails now and then when a process with Swift's runtime ends.
ATTEMPTS = 5


def record(kind: str, folder: pathlib.Path) -> pathlib.Path:
    out = folder / f"callgrind.{kind}"
    for _ in range(ATTEMPTS):
        run = subprocess.run(["valgrind", "--tool=callgrind", "--toggle-collect=*judgeOnce*", f"--callgrind-out-file={out}",
                              BINARY, "bench", "verdict", "--of", kind, "--rounds", str(ROUNDS)],
                             capture_output=True, text=True)
        if run.returncode == 0 and "Collected" in run.stderr:
            return out
    sys.exit(f"verdicts: {kind}: {run.stderr}")


def functions_of(out: pathlib.Path) -> collections.Counter:
    """Instructions of one judgement, by library and function."""
    text = subprocess.run(["callgrind_annotate", "--auto=no", "--threshold=100", out], check=True, capture_output=True,
                          text=True).stdout
    lines = re.findall(r"^ *([\d,]+) \([ \d.]+%\)  [^:\n]+:(.*?)(?: \[([^\[\]]*)\])?$", text, re.MULTILINE)
    functions = collections.Counter()
    for count, name, library in lines:
        functions[pathlib.Path(library).name or "countersign", name] += int(count.replace(",", "")) / REQUESTS
    return functions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--functions", type=int, default=0, help="how many functions to list for each kind")
    options = parser.parse_args()
    print(f"{'instructions of a judgement':28}{'ours':>10}{'libcrypto':>12}")
    with tempfile.TemporaryDirectory() as folder:
        for kind in options.kinds or KINDS:
            functions = functions_of(record(kind, pathlib.Path(folder)))
            crypto = sum(count for (library, _), count in functions.items() if library.startswith("libcrypto"))
            print(f"{kind:28}{sum(functions.values()) - crypto:>10,.0f}{crypto:>12,.0f}")
            most = [entry for entry in functions.most_common() if not entry[0][0].startswith("libcrypto")]
            names = subprocess.run(["swift", "demangle", "--simplified"], input="\n".join(name for (_, name), _ in most),
                                   capture_output=True, text=True, check=True).stdout.split("\n")
            for name, ((library, _), count) in list(zip(names, most, strict=False))[:options.functions]:
                print(f"{count:9,.0f}  {library:20} {name[:100]}")


if __name__ == "__main__":
    main()
