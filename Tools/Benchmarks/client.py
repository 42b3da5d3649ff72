#!/usr/bin/env python3
"""Processor time a request: an app's call with the SDK (`client.data`, signed, answer read whole), the
SDK's transport alone, and libcurl alone as a C program uses it; the same nginx on loopback, rounds in turn.
Also the cost of signing one request.

Usage: client.py [--rounds N] [--requests N] [--json FILE]. script/bench builds what it needs and calls it.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

import bench

BARE = bench.ROOT / ".build/bench/bare_curl"
LOAD = bench.ROOT / ".build-timing/release/client-load"
SERVER = """server {{ listen 127.0.0.1:{plain}; listen 127.0.0.1:{tls} ssl;
    ssl_certificate {folder}/certificate.pem; ssl_certificate_key {folder}/key.pem; ssl_protocols TLSv1.2 TLSv1.3;
    location / {{ default_type application/json; return 200 '{{"ok":true,"items":[1,2,3,4,5,6,7,8,9,10]}}'; }} }}"""


def measured(*command: object) -> float:
    done = subprocess.run([str(word) for word in command], cwd=bench.ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return float(done.stdout)


def certificate(folder: pathlib.Path) -> None:
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-keyout", folder / "key.pem", "-out", folder / "certificate.pem", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        certificate(folder)
        plain, tls = bench.reserve_port(), bench.reserve_port()
        nginx = bench.Nginx(folder, "client", SERVER.format(folder=folder, plain=plain, tls=tls))
        try:
            for url in (f"http://localhost:{plain}", f"https://localhost:{tls}"):
                for places in (1, 16, 64):
                    rounds = []
                    for _ in range(options.rounds):
                        rounds.append([
                            measured(BARE, f"{url}/bench", options.requests, places),
                            measured(LOAD, "carry", url, options.requests, places),
                            measured(LOAD, "data", url, options.requests, places),
                        ])
                    bare, carry, data = (statistics.median(column) for column in zip(*rounds))
                    results.append(
                        {"scheme": url.split(":")[0], "at_once": places, "bare_us": bare, "carry_us": carry, "data_us": data})
                    print(
                        f"{url.split(':')[0]:5} {places:2} at once: libcurl alone {bare:5.1f} µs, "
                        f"the transport {carry:5.1f} ({carry / bare:.2f}), client.data {data:5.1f} ({data / bare:.2f})", flush=True)
            signing = statistics.median(
                measured(LOAD, "sign", f"http://localhost:{plain}", 100_000, 1) for _ in range(options.rounds))
            print(f"client.signed: {signing:.2f} µs")
        finally:
            nginx.stop()
    if options.json:
        options.json.write_text(json.dumps({"requests": results, "sign_us": signing}, indent=1) + "\n")


if __name__ == "__main__":
    main()
