"""The gateway, `route test` and four backends read the same random targets: the first two agree, and a route is never more
open to the gateway than to any backend. COUNTERSIGN_LONG=1: 10,000 targets."""

import json
import os
import random

import pytest

from backend import Backend
from gateway import Gateway, run
from route_backends import Backends
from test_routes import unsigned

TARGETS = 10_000 if os.environ.get("COUNTERSIGN_LONG") else 1_500
SETS = 4
LEVELS = ["open", "signed", "session", "device"]
SEGMENTS = ["a", "admin", "pay", "news", "v1", "Public", "x@y", "login.php", "index.php"]
# What a segment or its end may become in a hostile target.
TWISTS = [str.upper, str.title, lambda name: name + ".json", lambda name: "%" + name[:1].encode().hex() + name[1:],
          lambda name: name + "/", lambda name: "./" + name, lambda name: name + "/..", lambda name: name + ";x",
          lambda name: name + "%20", lambda name: name + ".", lambda name: name + "%2F" + name, lambda name: "%2e%2e/" + name,
          lambda name: name.replace("@", "%40"), lambda name: "\\" + name, lambda name: name + "%00", lambda name: "%C5%BF" + name,
          lambda name: name.replace("a", "%E2%84%AA", 1), lambda name: "%C3%A9", lambda name: "", lambda name: name + "%",
          lambda name: name + "%252e", lambda name: name + "x"]


def make_rules(chance: random.Random) -> dict[str, str]:
    rules = {"/": chance.choice(LEVELS)}
    while len(rules) < 9:
        path = "/" + "/".join(chance.choice(SEGMENTS) for _ in range(chance.randint(1, 3)))
        rules.setdefault(path, chance.choice(LEVELS))
    return rules


def make_target(chance: random.Random, rules: dict[str, str]) -> str:
    if chance.random() < 0.7:
        path = chance.choice(list(rules)).strip("/").split("/") + [chance.choice(SEGMENTS)] * chance.randint(0, 1)
    else:
        path = [chance.choice(SEGMENTS) for _ in range(chance.randint(1, 4))]
    path = [chance.choice(TWISTS)(name) if chance.random() < 0.25 else name for name in path]
    return "/" + "/".join(path) + chance.choice(["", "", "", "?q=/../admin", "?"])


def told(gateway: Gateway, targets: list[str]) -> list[str]:
    done = run("route", "test", "demo", "GET", "-", "--json", "--data", gateway.data, stdin="\n".join(targets))
    return [row["refused"] or row["require"] for row in json.loads(done.out)["tests"]]


def judged(gateway: Gateway, targets: list[str]) -> list[str]:
    """By what it lets through, and by what it says where it does not."""
    found = []
    with gateway.connect() as connection:
        for target in targets:
            connection.send(unsigned(gateway, target))
            anybody = connection.answer()
            if anybody.status == 200:
                found.append("open")
                continue
            connection.send(gateway.key.request("GET", target))
            release = connection.answer()
            problem = {} if release.status == 200 else json.loads(release.body)
            if release.status == 200:
                found.append("signed")
            elif problem["code"] == "session-ended":
                found.append(next(level for level in LEVELS if f"asks for `{level}`" in problem["detail"]))
            else:
                found.append(problem["code"])
    return found


@pytest.mark.parametrize("seed", range(SETS))
def test_never_more_open_than_a_backend_reads_it(tmp_path, seed):
    chance = random.Random(seed)
    rules = make_rules(chance)
    targets = [make_target(chance, rules) for _ in range(TARGETS // SETS)]
    with Backend() as backend, Gateway(tmp_path / "gateway", "--tls", "off", "--upstream", backend.url) as gateway, \
            Backends(tmp_path / "backends", list(rules)) as backends:
        gateway.add_app("demo", require=rules["/"], legacy_host="127.0.0.1", debug="on")
        gateway.key = gateway.add_release()
        for path, level in rules.items():
            gateway.admin("route", "set", "demo", path, "--require", level)
        levels = told(gateway, targets)
        assert judged(gateway, targets) == levels
        read = backends.read(targets)
    names = list(rules)
    for number, (target, level) in enumerate(zip(targets, levels, strict=True)):
        if level == "malformed":
            continue
        for name, found in read.items():
            if found[number] is None:
                continue
            wanted = rules[names[found[number]]]
            assert LEVELS.index(level) >= LEVELS.index(wanted), f"{target}: {level}, and {name} reads {names[found[number]]}: {wanted}"
    # Both kinds must be there, or this shows nothing.
    plain = sum(level != "malformed" for level in levels)
    assert plain > len(levels) / 4 and plain < len(levels) and len(set(levels)) >= 3
