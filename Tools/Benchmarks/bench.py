#!/usr/bin/env python3
"""CPU per request and requests a second: the gateway, which verifies every request and remembers it, beside
nginx's `proxy_pass`, which checks nothing (for a refusal: `return 403`). One worker each, no access log, the
same backend, the same requests, rounds in turn. Every request and every answer is checked (load.c,
backend.c): one that is lost, repeated, cached or changed ends the measurement.

Usage: bench.py [--case NAME]... [--list] [--rounds N] [--requests N] [--syscalls] [--json FILE]. script/bench
builds what it needs and calls it.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

from cases import CASES, FORBIDDEN, ROOT, Case, Lie, Stage, reserve_port  # noqa: F401 (client.py)
from nginx import Nginx, cpu

# Its buffers hold the bodies and answers of all cases, so that it writes none to a file.
PROXY = """upstream backend {{ server 127.0.0.1:{backend}; keepalive 1024; keepalive_requests 100000000; }}
    client_body_buffer_size 128k; proxy_buffer_size 16k; proxy_buffers 8 32k; proxy_busy_buffers_size 64k;
    {certificate}
    server {{ listen 127.0.0.1:{port} {ssl} backlog=1024; location / {{ {location} }} }}"""
PASS = """proxy_pass http://backend; proxy_http_version 1.1; proxy_set_header Connection "";"""
CERTIFICATE = """ssl_certificate {folder}/certificate.pem; ssl_certificate_key {folder}/key.pem; ssl_protocols TLSv1.2 TLSv1.3;"""


class Comparison:
    """nginx with the same work and no checks."""

    def __init__(self, stage: Stage, folder: pathlib.Path):
        self.port, case = reserve_port(), stage.case
        certificate = CERTIFICATE.format(folder=stage.gateway.data / "tls") if case.is_tls else ""
        self.nginx = Nginx(folder, "proxy", PROXY.format(
            backend=stage.backend.port, port=self.port, ssl="ssl" if case.is_tls else "", certificate=certificate,
            location=f"return {FORBIDDEN};" if case.refusal else PASS))


def system_calls(pid: int, work: Callable[[], dict]) -> float:
    """System calls per request of what `work` sends, all threads. perf counts them at no cost; strace, where perf may
    not, slows the process."""
    commands = [["perf", "stat", "-x,", "-e", "raw_syscalls:sys_enter", "-p", str(pid)],
                ["strace", "-f", "-c", "-U", "calls,name", "-p", str(pid)]]
    for command in commands:
        counter = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        time.sleep(0.5)
        if counter.poll() is not None:
            counter.communicate()
            continue
        result = work()
        counter.send_signal(2)
        said = counter.communicate(timeout=30)[1]
        # perf has one line, with the count first; strace's last line is the total.
        counts = [line.split(",")[0].split()[0] for line in said.splitlines() if line.strip()]
        if counts and counts[-1].isdigit():
            return int(counts[-1]) / result["requests"]
    sys.exit("bench: neither perf nor strace counts system calls here")


def measure(case: Case, options, folder: pathlib.Path) -> dict:
    requests = max(round(options.requests * case.share), 2 * case.connections)
    samples: dict[str, list[tuple[float, float]]] = {"gateway": [], "nginx": []}
    with Stage(case, folder) as stage:
        proxy = Comparison(stage, folder)
        status = FORBIDDEN if case.refusal else None
        sides = {"gateway": (stage.gateway.process.pid, lambda: stage.send(requests)),
                 "nginx": (proxy.nginx.worker, lambda: stage.send(requests, port=proxy.port, status=status))}
        try:
            for round_ in range(options.rounds + 1):
                for who, (pid, work) in sides.items():
                    before = cpu(pid)
                    result = work()
                    # The first round warms up both, and does not count.
                    if round_:
                        samples[who].append(((cpu(pid) - before) / result["requests"] * 1e6, result["per_second"]))
            row = summary(case, requests, samples)
            if options.syscalls:
                for who, (pid, work) in sides.items():
                    row[who]["system_calls"] = round(system_calls(pid, work), 2)
        finally:
            proxy.nginx.stop()
    return row


def summary(case: Case, requests: int, samples: dict) -> dict:
    """Medians and minima: other load on the machine can only add to a time."""
    row = {"case": case.name, "requests": requests}
    for who, pairs in samples.items():
        taken, served = zip(*pairs, strict=True)
        row[who] = {"median_us": round(statistics.median(taken), 2), "least_us": round(min(taken), 2),
                    "per_second": round(statistics.median(served)), "all_us": [round(each, 2) for each in taken]}
    ours, theirs = row["gateway"], row["nginx"]
    row["ratio_of_medians"] = round(ours["median_us"] / theirs["median_us"], 3)
    row["ratio_of_leasts"] = round(ours["least_us"] / theirs["least_us"], 3)
    return row


def line(row: dict, has_calls: bool) -> str:
    columns = ""
    for who in ("gateway", "nginx"):
        side = row[who]
        columns += f"{side['median_us']:8.1f}{side['least_us']:7.1f} µs{side['per_second']:8,}/s"
        columns += f"{side['system_calls']:6.2f}" if has_calls else ""
    return f"{row['case']:15}{columns} {row['ratio_of_medians']:8.2f} {row['ratio_of_leasts']:6.2f}"


def chosen(names: list[str] | None, cases: list[Case]) -> list[Case]:
    """The cases that the options name, or all of these."""
    if unknown := set(names or ()) - set(CASES):
        sys.exit(f"no case {', '.join(sorted(unknown))}; expected of {', '.join(CASES)}")
    return [CASES[name] for name in names] if names else cases


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", action="append", metavar="NAME", help="measure this one; may be repeated")
    parser.add_argument("--list", action="store_true", help="say what each case is, and measure nothing")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=30_000, help="of each round of an ordinary case; costly ones have fewer")
    parser.add_argument("--syscalls", action="store_true", help="count system calls, in a further round")
    parser.add_argument("--json", type=pathlib.Path, default=ROOT / ".build/bench/result.json")
    options = parser.parse_args()
    if options.list:
        for case in CASES.values():
            print(f"{case.name:15} {case.describe()}")
        return
    width = 31 if options.syscalls else 25
    print("CPU of the proxy per request, median and least; requests a second" + ("; system calls" if options.syscalls else ""))
    print(f"{'':15}{'gateway, all checks':>{width}}{'nginx, no check':>{width}}  gateway ÷ nginx", flush=True)
    rows = []
    for case in chosen(options.case, list(CASES.values())):
        with tempfile.TemporaryDirectory(dir=ROOT / ".build/bench") as folder:
            try:
                rows.append(measure(case, options, pathlib.Path(folder)))
            except Lie as lie:
                sys.exit(f"bench: {case.name}: {lie}")
        print(line(rows[-1], options.syscalls), flush=True)
    options.json.write_text(json.dumps({"rounds": options.rounds, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
