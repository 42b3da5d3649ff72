#!/usr/bin/env python3
"""Measures the service that an ordinary client gets while unauthenticated clients attack. The client sends
200 signed requests a second from one address, and each attack of Tests/Support/attacks.py comes from
another address at full speed. The server has one loop and a core of its own; the attackers and the client
share the other core.

A row passes if the 99th percentile is at most 20 ms, or at most 5 ms above nginx's under the same attack;
no request failed; resident memory and the log stayed within their budgets; the administrators' /health
answered within 50 ms; and SIGTERM, sent while the attack goes on, ended the server. Exit 1 if a row does
not pass.

Usage: fairness.py [--seconds N] [--attack NAME]... [--transport plain|tls] [--json FILE] [--list] [--no-nginx]
script/fairness builds what it needs and calls it.
"""

import argparse
import json
import os
import pathlib
import shutil
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "Tests/Support"))

from attackers import Attack, Attackers, Probe, Target, build_tools, ordinary_requests  # noqa: E402
from attacks import ATTACKS  # noqa: E402
from attacked import RATE, AttackedGateway, Places, failures, measure  # noqa: E402
from nginx import Nginx  # noqa: E402
from ports import reserve_port  # noqa: E402
from signing import ReleaseKey  # noqa: E402

# Milliseconds.
MOST_P99, NGINX_MARGIN, MOST_ADMIN_P99 = 20.0, 5.0, 50.0
BACKEND = """server {{ listen 127.0.0.1:{backend} backlog=1024;
    client_max_body_size 2m; client_body_buffer_size 1m;
    location / {{ default_type application/json; return 200 '{{"ok":true}}'; }} }}"""
# Like the gateway, it refuses requests without a signature before it contacts the backend.
PROXY = """upstream backend {{ server 127.0.0.1:{backend}; keepalive 128; keepalive_requests 100000000; }}
    server {{ listen 127.0.0.1:{port} {ssl} backlog=1024; {certificate}
    client_max_body_size 2m; client_body_buffer_size 1m;
    location / {{ if ($http_signature = "") {{ return 401; }}
        proxy_pass http://backend; proxy_http_version 1.1; proxy_set_header Connection ""; }} }}"""


def say(text: str) -> None:
    print(f"fairness: {text}", file=sys.stderr, flush=True)


def pinned(core: int, *, first: bool = False) -> tuple[str, ...]:
    """Runs a command on one core; `first` gives it priority there, so that a flood does not delay the
    measurement."""
    own = ("taskset", "-c", str(core))
    return (*own, "chrt", "-f", "1") if first and os.geteuid() == 0 and shutil.which("chrt") else own


class Comparison:
    """nginx as a proxy with the same number of loops."""

    def __init__(self, folder: pathlib.Path, backend: int, is_tls: bool, certificate: pathlib.Path):
        self.port = reserve_port()
        lines = (
            f"ssl_certificate {certificate}/certificate.pem; ssl_certificate_key {certificate}/key.pem;"
            if is_tls
            else ""
        )
        self.nginx = Nginx(
            folder,
            f"proxy-{self.port}",
            PROXY.format(backend=backend, port=self.port, ssl="ssl" if is_tls else "", certificate=lines),
            pinned(0),
        )


def compare(attack: Attack, is_tls: bool, options, folder: pathlib.Path, backend: int) -> dict:
    places = Places(pinned(0), pinned(1), pinned(1, first=True))
    with AttackedGateway(
        folder, attack, is_tls, "--upstream", f"http://127.0.0.1:{backend}", prefix=places.server
    ) as gateway:
        row = measure(attack, gateway, options.seconds, folder, places)
    if attack.has_nginx and not options.no_nginx:
        row["nginx"] = beside_nginx(attack, is_tls, options.seconds, folder, backend, places)
    return row | {"misses": failures(row, attack) + too_slow(row)}


def beside_nginx(
    attack: Attack, is_tls: bool, seconds: int, folder: pathlib.Path, backend: int, places: Places
) -> dict:
    """Measures the same client against nginx under the same attack."""
    other = Comparison(folder, backend, is_tls, folder / "data/tls")
    try:
        target = Target(other.port, is_tls, ReleaseKey("r_nobody", "c2VjcmV0", f"127.0.0.1:{other.port}"))
        with Attackers(attack, target, folder, seconds * 3 + 60, places.attackers):
            time.sleep(0.5)
            requests = ordinary_requests(target.key, RATE * seconds)
            return Probe(other.port, is_tls, requests, folder / "probe", RATE, prefix=places.client).result(
                seconds * 2 + 60
            )
    finally:
        other.nginx.stop()


def too_slow(row: dict) -> list[str]:
    ours, admin, most = row["gateway"], row["admin"], MOST_P99
    if row.get("nginx", {}).get("p99", -1) >= 0:
        most = max(most, row["nginx"]["p99"] + NGINX_MARGIN)
    found = [] if 0 <= ours["p99"] <= most else [f"p99 {ours['p99']:.1f} ms, at most {most:.1f}"]
    return found + ([] if 0 <= admin["p99"] <= MOST_ADMIN_P99 else [f"/health p99 {admin['p99']:.1f} ms"])


HEADINGS = (
    "attack",
    "the attackers",
    "p50",
    "p99",
    "most",
    "failed",
    "nginx p99",
    "/health",
    "MiB",
    "log KiB",
)
WIDTHS = (27, 26, 8, 9, 9, 8, 11, 9, 7, 9)


def show(rows: list[dict]) -> None:
    lines = [(HEADINGS, "")] + [(cells(row), "; ".join(row["misses"])) for row in rows]
    for texts, misses in lines:
        columns = (text.rjust(width) for text, width in zip(texts[1:], WIDTHS[1:], strict=True))
        print(f"{texts[0]:{WIDTHS[0]}}{''.join(columns)}  {misses}".rstrip())


def cells(row: dict) -> tuple[str, ...]:
    ours, theirs, did = row["gateway"], row.get("nginx"), row["attackers"]
    times = tuple(f"{ours[name]:.1f}" for name in ("p50", "p99", "most"))
    return (
        f"{row['attack']}, {row['transport']}",
        f"{did['answers'] / did['seconds']:,.0f}/s of {did['opened']:,.0f} conn.",
        *times,
        str(ours["errors"]),
        f"{theirs['p99']:.1f}{'!' if theirs['errors'] else ''}" if theirs else "-",
        f"{row['admin']['p99']:.1f}",
        f"{row['grown_mib']:.0f}",
        f"{row['log_bytes'] / 1024:.0f}",
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--seconds", type=int, default=30, help="for each attack and transport (at most 40: signatures age)"
    )
    parser.add_argument(
        "--attack", action="append", choices=[attack.name for attack in ATTACKS], metavar="NAME"
    )
    parser.add_argument("--transport", choices=["plain", "tls"])
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--list", action="store_true", help="name the attacks, and stop")
    parser.add_argument("--no-nginx", action="store_true")
    options = parser.parse_args()
    if options.list:
        for attack in ATTACKS:
            print(f"{attack.name:20} {attack.summary}")
        return
    if not 1 <= options.seconds <= 40:
        parser.error("--seconds is from 1 to 40")
    build_tools()
    rows: list[dict] = []
    with tempfile.TemporaryDirectory(dir=ROOT / ".build") as name:
        folder, port = pathlib.Path(name), reserve_port()
        backend = Nginx(folder, "backend", BACKEND.format(backend=port), pinned(1, first=True))
        try:
            chosen = [attack for attack in ATTACKS if not options.attack or attack.name in options.attack]
            for attack in chosen:
                for transport in attack.transports:
                    if options.transport in (None, transport):
                        say(f"{attack.name}, {transport}: {attack.summary}")
                        own = folder / f"{attack.name}-{transport}"
                        own.mkdir()
                        rows.append(compare(attack, transport == "tls", options, own, port))
                        say("; ".join(rows[-1]["misses"]) or "holds")
                        shutil.rmtree(own)
                        if options.json:
                            options.json.write_text(
                                json.dumps({"seconds": options.seconds, "rate": RATE, "rows": rows}, indent=1)
                            )
        finally:
            backend.stop()
    show(rows)
    sys.exit(1 if not rows or any(row["misses"] for row in rows) else 0)


if __name__ == "__main__":
    main()
