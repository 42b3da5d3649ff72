"""Tests whether the time of a login reveals if an account exists: login/start, a failing login/finish, and
a wrong password at both legacy endpoints, over real HTTP on loopback, for names with and without an account
in random order. Runs Welch's t-test on the times of the two classes, and also on a build that refuses names
without an account at once, which the test must detect. script/enumeration starts it.
"""

import argparse
import base64
import gc
import json
import math
import os
import pathlib
import random
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "Tests/Support"))
LIMIT = 4.5
# Crops the slowest times over both classes together, because they come from interruptions. Their number is
# not known in advance, so, like dudect, the test tries several crops and the worst result counts. Source:
# Reparaz, Balasch, Verbauwhede, "Dude, is my code constant time?", 2017.
CROPS = (0.0, 0.1, 0.25, 0.5, 0.75)
ACCOUNTS = 8
DOORS = {"login.php": "md5", "loginhmac.php": "hmac-md5-time"}
KEY = "the key that old clients have built in"


def text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


# The generator of ristretto255 (RFC 9496, appendix A.1): the server's computation does not depend on the
# element.
ELEMENT = bytes.fromhex("e2f2ae0a6abc4e71a884a961c500515f58e30b6aa582dd8db6a65945e08d2d76")
POINT = b"\4" + bytes(64)


def start_body(name: str) -> bytes:
    device = {"signing_key": text(POINT), "agreement_key": text(POINT), "class": "phone", "name": "measure"}
    return json.dumps({"account": name, "ke1": text(ELEMENT + os.urandom(32) + ELEMENT), "device": device}).encode()


def finish_body(login_id: str) -> bytes:
    return json.dumps({"login_id": login_id, "ke3": text(os.urandom(64)), "signature": text(os.urandom(64)),
                       "mac": text(os.urandom(32))}).encode()


def timed(connection, request: bytes) -> tuple[float, object]:
    began = time.perf_counter_ns()
    connection.send(request)
    answer = connection.answer()
    return (time.perf_counter_ns() - began) / 1000, answer


def shuffled() -> list[str]:
    kinds = ["known", "unknown"]
    random.shuffle(kinds)
    return kinds


def measure_door(gateway, door: str, pairs: int) -> dict[str, list[float]]:
    """Microseconds of a wrong password at the legacy endpoint `door`, for names on its rung and for names
    without an account."""
    times = {"known": [], "unknown": []}
    answers = set()
    with gateway.connect() as connection:
        for turn in range(-50, pairs):
            for kind in shuffled():
                name = f"{DOORS[door] if kind == 'known' else 'x' * len(DOORS[door])}{random.randrange(ACCOUNTS)}"
                form = f"username={name}&password={os.urandom(16).hex()}".encode()
                head = (f"POST /login/{door} HTTP/1.1\r\nHost: 127.0.0.1:{gateway.port}\r\n"
                        f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(form)}\r\n\r\n")
                taken, answer = timed(connection, head.encode() + form)
                answers.add((answer.status, answer.body))
                if turn >= 0:
                    times[kind].append(taken)
    assert answers == {(200, b'{"userId":0}')}, f"answers differ: {answers}"
    return times


def measure(gateway, key, pairs: int, is_broken: bool) -> dict[str, dict[str, list[float]]]:
    """Microseconds of each step for known and unknown names, pair by pair, in random order."""
    times = {step: {"known": [], "unknown": []} for step in ("login/start", "login/finish")}
    prefix = "/countersign/v1/"
    shapes = set()
    with gateway.connect() as connection:
        for turn in range(-50, pairs):
            for kind in shuffled():
                # Names of equal length for both classes; a new one each time, as an attacker would send.
                name = f"{'member' if kind == 'known' else 'nobody'}{random.randrange(ACCOUNTS)}"
                first, begun = timed(connection, key.request("POST", prefix + "login/start", start_body(name)))
                assert begun.status == 200, begun.body
                login_id = json.loads(begun.body)["login_id"]
                second, ended = timed(connection, key.request("POST", prefix + "login/finish", finish_body(login_id)))
                # The planted fault begins no login for an unknown name, and so has none to finish.
                codes = (b"wrong-credentials", b"login-expired") if is_broken else (b"wrong-credentials",)
                assert ended.status == 401 and any(code in ended.body for code in codes), ended.body
                shapes.add((len(begun.body), len(ended.body)))
                # The first logins warm up caches and prepared statements.
                if turn >= 0:
                    times["login/start"][kind].append(first)
                    times["login/finish"][kind].append(second)
    assert is_broken or len(shapes) == 1, f"answers differ in length: {shapes}"
    return times


def welch(known: list[float], unknown: list[float], crop: float) -> float:
    ceiling = sorted(known + unknown)[int((len(known) + len(unknown)) * (1 - crop)) - 1]
    kept = [[value for value in values if value <= ceiling] for values in (known, unknown)]
    # A class of which the crop leaves almost nothing cannot be compared: it is slower, which another crop
    # shows.
    if min(len(values) for values in kept) < 10:
        return 0
    means = [sum(values) / len(values) for values in kept]
    errors = [sum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values)
              for values, mean in zip(kept, means)]
    return abs(means[0] - means[1]) / math.sqrt(sum(errors))


def median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def add_accounts(gateway) -> None:
    gateway.add_app(legacy_login="on", legacy_key=KEY)
    for number in range(ACCOUNTS):
        gateway.admin("account", "add", "demo", f"member{number}", "--password-stdin", stdin=f"password {number}\n")
    rows = [{"name": f"{rung}{number}", "user_id": 1 + number + 100 * place, "rung": rung, "value": os.urandom(16).hex()}
            for place, rung in enumerate(DOORS.values()) for number in range(ACCOUNTS)]
    gateway.admin("account", "import", "demo", "-", stdin="\n".join(json.dumps(row) for row in rows))


def run(pairs: int, broken: bool, only: str | None) -> dict[str, float]:
    # The module reads the binary's path when it is imported, so one process measures one build.
    from gateway import Gateway

    faults = ["--sabotage", "unknown-account-fast"] if broken else []
    generous = [part for kind in ("account", "address", "device") for part in (f"--login-{kind}", "1000000/1s")]
    with tempfile.TemporaryDirectory() as folder:
        gateway = Gateway(pathlib.Path(folder), "--tls", "off", "--log", "off", *generous, *faults)
        add_accounts(gateway)
        with gateway:
            key = gateway.add_release()
            gc.collect()
            gc.disable()
            times = measure(gateway, key, pairs, broken) if only in (None, "opaque") else {}
            times |= {door: measure_door(gateway, door, pairs) for door in DOORS if only in (None, door)}
    found = {}
    for step, kinds in times.items():
        found[step] = max(welch(kinds["known"], kinds["unknown"], crop) for crop in CROPS)
        print(f"measured {'early return' if broken else 'as built'}: {step}: known "
              f"{median(kinds['known']):.1f} µs, unknown {median(kinds['unknown']):.1f} µs (medians), "
              f"|t| = {found[step]:.2f} over {pairs} each", flush=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=20_000)
    parser.add_argument("--broken", action="store_true", help="countersign-breakable (by COUNTERSIGN_BINARY), which answers unknown names at once")
    parser.add_argument("--only", choices=["opaque", *DOORS], help="one of the ways to sign in")
    parser.add_argument("--show", action="store_true", help="print, and judge nothing")
    options = parser.parse_args()
    found = run(options.pairs, options.broken, options.only)
    if options.show:
        return 0
    if options.broken:
        # Each way must show the planted fault, except login/finish, which does not have it.
        return 0 if min(value for step, value in found.items() if step != "login/finish") > LIMIT else 1
    return 0 if max(found.values()) < LIMIT else 1


sys.exit(main())
