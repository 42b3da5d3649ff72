#!/usr/bin/env python3
"""CPU per request and requests a second: the gateway, which verifies every request and remembers it, beside
nginx's `proxy_pass`, which checks nothing. One worker each, no access log, the same backend, the same
requests, rounds in turn. The backend must have received each request once: otherwise a cached response
would be measured as a forwarded one.

Usage: bench.py [--rounds N] [--requests N] [--json FILE]. script/bench builds what it needs and calls it.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import urllib.request
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "Tests/Support"))

from gateway import Gateway  # noqa: E402
from nginx import Nginx, cpu  # noqa: E402
from ports import free_port  # noqa: E402
from signing import decode_secret  # noqa: E402

LOAD = ROOT / ".build/bench/load"
BACKEND = """server {{ listen 127.0.0.1:{backend} backlog=1024;
    location / {{ default_type application/json; return 200 '{{"ok":true,"items":[1,2,3,4,5,6,7,8,9,10]}}'; }}
    location = /seen {{ stub_status; }} }}"""
PROXY = """upstream backend {{ server 127.0.0.1:{backend}; keepalive 128; keepalive_requests 100000000; }}
    server {{ listen 127.0.0.1:{plain} backlog=1024; listen 127.0.0.1:{tls} ssl backlog=1024;
    ssl_certificate {certificate}; ssl_certificate_key {key}; ssl_protocols TLSv1.2 TLSv1.3;
    client_body_buffer_size 64k;
    location / {{ proxy_pass http://backend; proxy_http_version 1.1; proxy_set_header Connection ""; }} }}"""


@dataclass(frozen=True)
class Shape:
    """A kind of request."""
    name: str
    body: int = 0
    # Whether each request has its own Idempotency-Key: the gateway then writes to the disk twice, so the
    # run sends fewer.
    is_keyed: bool = False

    def count(self, requests: int) -> int:
        return max(requests // 20, 64) if self.is_keyed else requests


SHAPES = [Shape("GET"), Shape("POST 512 B", 512), Shape("keyed POST", 512, is_keyed=True)]


def seen(port: int) -> int:
    """The number of requests that the backend has received, including this one."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/seen", timeout=10) as answer:
        return int(answer.read().split()[9])


def load(port: int, key, requests: int, body: int, uses_tls: bool, *, is_keyed: bool = False, connections: int = 64) -> dict:
    command = [LOAD, "--port", port, "--authority", key.authority, "--key-id", key.key_id,
               "--secret", decode_secret(key.secret).hex(), "--requests", requests, "--connections", connections, "--body", body]
    done = subprocess.run([*map(str, command), *(["--tls"] if uses_tls else []), *(["--keyed"] if is_keyed else [])], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"bench: an answer was not 200: {done.stderr[:400]}{done.stdout}")
    return json.loads(done.stdout)


def measure(options, folder: pathlib.Path) -> list[dict]:
    ports = {name: free_port() for name in ("backend", "plain", "tls")}
    backend = Nginx(folder, "backend", BACKEND.format(**ports))
    upstream = ("--upstream", f"http://127.0.0.1:{ports['backend']}", "--log", "off", "--workers", 1,
                "--limit-kept-keys", 100_000_000)
    # Two gateways, one with TLS and one without, each with its own data folder and key, because a data
    # folder is locked by one process.
    gateways = {"plain": Gateway(folder / "plain", *upstream, "--tls", "off"), "tls": Gateway(folder / "tls", *upstream)}
    for gateway in gateways.values():
        gateway.start()
        gateway.add_app("bench")
        gateway.key = gateway.add_release("bench")
    tls = gateways["tls"].data / "tls"
    proxy = Nginx(folder, "proxy", PROXY.format(**ports, certificate=tls / "certificate.pem", key=tls / "key.pem"))

    samples: dict[tuple, list[tuple[float, float]]] = {}
    try:
        for round_ in range(options.rounds + 1):
            for shape in SHAPES:
                for mode, gateway in gateways.items():
                    for who in ("gateway", "nginx"):
                        port = gateway.port if who == "gateway" else ports[mode]
                        used = (lambda: cpu(gateway.process.pid)) if who == "gateway" else proxy.cpu
                        before, seen_before = used(), seen(ports["backend"])
                        result = load(port, gateway.key, shape.count(options.requests), shape.body, mode == "tls",
                                      is_keyed=shape.is_keyed)
                        took = (used() - before) / result["requests"] * 1e6
                        had = seen(ports["backend"]) - seen_before - 1
                        if had != result["requests"]:
                            sys.exit(f"bench: {mode}, {shape.name}, {who}: {result['requests']} answers, and the backend had {had}")
                        # The first round warms up both, and does not count.
                        if round_:
                            samples.setdefault((mode, shape.name, who), []).append((took, result["per_second"]))
    finally:
        proxy.stop()
        for gateway in gateways.values():
            gateway.stop()
        backend.stop()

    return [summary(mode, shape.name, samples) for mode in gateways for shape in SHAPES]


def summary(mode: str, shape: str, samples: dict) -> dict:
    """Medians and minima: other load on the machine can only add to a time."""
    row = {"transport": mode, "request": shape}
    for who in ("gateway", "nginx"):
        taken, served = zip(*samples[mode, shape, who], strict=True)
        row[who] = {"median_us": round(statistics.median(taken), 2), "least_us": round(min(taken), 2),
                    "per_second": round(statistics.median(served)), "all_us": [round(each, 2) for each in taken]}
    ours, theirs = row["gateway"], row["nginx"]
    row["ratio_of_medians"] = round(ours["median_us"] / theirs["median_us"], 3)
    row["ratio_of_leasts"] = round(ours["least_us"] / theirs["least_us"], 3)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=100_000, help="in each round, for each of the two")
    parser.add_argument("--json", type=pathlib.Path, default=ROOT / ".build/bench/result.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=ROOT / ".build/bench") as folder:
        rows = measure(options, pathlib.Path(folder))
    options.json.write_text(json.dumps({"rounds": options.rounds, "requests": options.requests, "rows": rows}, indent=1))
    print(f"CPU of the proxy per request: median and least of {options.rounds} rounds of {options.requests:,}; requests a second")
    print(f"{'':18}{'gateway, all checks':>31}{'nginx, no check':>31}   gateway ÷ nginx")
    for row in rows:
        columns = "".join(f"{row[who]['median_us']:8.1f}{row[who]['least_us']:7.1f} µs {row[who]['per_second']:9,}/s "
                          for who in ("gateway", "nginx"))
        print(f"{row['transport'] + ', ' + row['request']:18}  {columns} {row['ratio_of_medians']:8.2f} {row['ratio_of_leasts']:6.2f}")


if __name__ == "__main__":
    main()
