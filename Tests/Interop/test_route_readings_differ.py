"""The gateway, `route test` and four backends read the same random methods and targets: the first two agree, and a route is
never more open to the gateway than to any backend. COUNTERSIGN_LONG=1: 10,000 targets."""

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
METHODS = ["GET", "HEAD", "POST", "DELETE"]
Route = tuple[str, tuple[str, ...]]
SEGMENTS = ["a", "admin", "pay", "news", "v1", "Public", "x@y", "login.php", "index.php"]
# What a segment or its end may become in a hostile target.
TWISTS = [str.upper, str.title, lambda name: name + ".json", lambda name: "%" + name[:1].encode().hex() + name[1:],
          lambda name: name + "/", lambda name: "./" + name, lambda name: name + "/..", lambda name: name + ";x",
          lambda name: name + "%20", lambda name: name + ".", lambda name: name + "%2F" + name, lambda name: "%2e%2e/" + name,
          lambda name: name.replace("@", "%40"), lambda name: "\\" + name, lambda name: name + "%00", lambda name: "%C5%BF" + name,
          lambda name: name.replace("a", "%E2%84%AA", 1), lambda name: "%C3%A9", lambda name: "", lambda name: name + "%",
          lambda name: name + "%252e", lambda name: name + "x"]


def make_rules(chance: random.Random) -> dict[Route, str]:
    """Levels by path and methods; no methods are all."""
    rules: dict[Route, str] = {("/", ()): chance.choice(LEVELS)}
    while len(rules) < 12:
        path = "/" + "/".join(chance.choice(SEGMENTS) for _ in range(chance.randint(1, 3)))
        methods = tuple(sorted(chance.sample(METHODS, chance.randint(1, 2)))) if chance.random() < 0.4 else ()
        rules.setdefault((path, methods), chance.choice(LEVELS))
        if methods and chance.random() < 0.5:
            rules.setdefault((path, ()), chance.choice(LEVELS))
    return rules


def make_target(chance: random.Random, rules: dict[Route, str]) -> str:
    if chance.random() < 0.7:
        path = chance.choice(list(rules))[0].strip("/").split("/") + [chance.choice(SEGMENTS)] * chance.randint(0, 1)
    else:
        path = [chance.choice(SEGMENTS) for _ in range(chance.randint(1, 4))]
    path = [chance.choice(TWISTS)(name) if chance.random() < 0.25 else name for name in path]
    return "/" + "/".join(path) + chance.choice(["", "", "", "?q=/../admin", "?"])


def told(gateway: Gateway, requests: list[tuple[str, str]]) -> list[dict]:
    """What `route test` says of each."""
    rows: dict[tuple[str, str], dict] = {}
    for method in METHODS:
        targets = sorted({target for other, target in requests if other == method})
        done = run("route", "test", "demo", method, "-", "--json", "--data", gateway.data, stdin="\n".join(targets))
        rows |= {(method, target): row for target, row in zip(targets, json.loads(done.out)["tests"], strict=True)}
    return [rows[request] for request in requests]


def outcome(method: str, word: str) -> str:
    """A refusal of a HEAD has no body: its status does not distinguish session from device."""
    return "session" if (method, word) == ("HEAD", "device") else word


def judged(gateway: Gateway, requests: list[tuple[str, str]]) -> list[str]:
    """By what it lets through, and by what it says where it does not."""
    found = []
    with gateway.connect() as connection:
        for method, target in requests:
            is_head = method == "HEAD"
            connection.send(unsigned(gateway, target, method))
            anybody = connection.answer(to_head=is_head)
            if anybody.status == 200:
                found.append("open")
                continue
            connection.send(gateway.key.request(method, target))
            release = connection.answer(to_head=is_head)
            if release.status == 200:
                found.append("signed")
            elif is_head:
                found.append({400: "malformed", 401: "session"}[release.status])
            else:
                problem = json.loads(release.body)
                found.append(next(level for level in LEVELS if f"asks for `{level}`" in problem["detail"])
                             if problem["code"] == "session-required" else problem["code"])
    return found


@pytest.mark.parametrize("seed", range(SETS))
def test_never_more_open_than_a_backend_reads_it(tmp_path, seed):
    chance = random.Random(seed)
    rules = make_rules(chance)
    requests = [(chance.choice(METHODS), make_target(chance, rules)) for _ in range(TARGETS // SETS)]
    with Backend() as backend, Gateway(tmp_path / "gateway", "--tls", "off", "--upstream", backend.url) as gateway, \
            Backends(tmp_path / "backends", list(rules)) as backends:
        gateway.add_app("demo", require=rules["/", ()], legacy_host="127.0.0.1", debug="on")
        gateway.key = gateway.add_release()
        for (path, methods), level in rules.items():
            named = ["--methods", ",".join(methods)] if methods else []
            gateway.admin("route", "set", "demo", path, "--require", level, *named)
        tests = told(gateway, requests)
        levels = [test["refused"] or test["require"] for test in tests]
        assert judged(gateway, requests) == [outcome(method, level) for (method, _), level in zip(requests, levels, strict=True)]
        read = backends.read(requests)
    routes = list(rules)
    for number, (request, level) in enumerate(zip(requests, levels, strict=True)):
        if level == "malformed":
            continue
        for name, found in read.items():
            if found[number] is None:
                continue
            route = routes[found[number]]
            assert LEVELS.index(level) >= LEVELS.index(rules[route]), f"{request}: {level}, and {name} reads {route}: {rules[route]}"
    # All kinds must be there, or this shows nothing.
    plain = sum(level != "malformed" for level in levels)
    assert plain > len(levels) / 4 and plain < len(levels) and len(set(levels)) >= 3
    assert any(test["rule"] and test["rule"]["methods"] for test in tests)
    for name, found in read.items():
        assert any(number is not None and routes[number][1] for number in found), f"{name} finds no route by its method"
