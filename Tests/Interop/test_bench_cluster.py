"""The parts of `script/bench cluster`: filled deployments, the clients that sign in, and the tables measure what they say, and end where
they cannot."""

import json
import re
import shutil
import sys

import pytest

from gateway import run
from nodes import HOST
from postgres import programs
from products import ROOT
from signing import ReleaseKey
from wire import Connection

sys.path.insert(0, str(ROOT / "Tools/Benchmarks"))

import cases  # noqa: E402
import logins  # noqa: E402
import meters  # noqa: E402
import scale  # noqa: E402
import sites  # noqa: E402

# With the benchmark itself.
pytestmark = pytest.mark.full

CLIENTS = 6


@pytest.fixture
def site(tools, tmp_path, monkeypatch):
    monkeypatch.setattr(sites, "Backend", lambda: cases.Backend(tools / "backend"))
    for module in (sites, logins):
        monkeypatch.setattr(module, "LOAD", tools / "load")
    with sites.Site(tmp_path / "site", None) as made:
        yield made


def test_clients_sign_up_sign_in_and_renew(site):
    figures = logins.measured(site, CLIENTS)
    assert set(figures) == {"signup", "login", "refresh"}
    assert all(row["gateway_us"] > 0 and row["per_second"] > 0 for row in figures.values())
    listed = json.loads(site.nodes[0].admin("session", "list", "demo", "--json").out)
    assert len(listed["sessions"] if isinstance(listed, dict) else listed) == CLIENTS


@pytest.mark.skipif(programs() is None or not shutil.which("redis-server"), reason="no postgres, or no redis-server")
def test_the_two_requests_of_a_login_reach_different_nodes(tools, tmp_path, monkeypatch):
    """Of three clients, two begin their logins at one node, and two finish them at the other."""
    monkeypatch.setattr(sites, "Backend", lambda: cases.Backend(tools / "backend"))
    for module in (sites, logins):
        monkeypatch.setattr(module, "LOAD", tools / "load")
    with sites.Servers() as servers, sites.Site(tmp_path / "site", servers, nodes=2) as site:
        logins.measured_once(site, 3, 0)
        pages = [node.asked("/metrics")[1] for node in site.nodes]
    begun, finished = ([int(re.search(pattern, page, re.MULTILINE)[1]) for page in pages] for pattern in (
        r"^countersign_login_starts_total (\d+)", r'^countersign_logins_total\{outcome="succeeded"\} (\d+)'))
    assert begun == [2, 1] and finished == [1, 2]


def test_a_response_that_is_not_the_steps_ends_the_clients(site):
    clients = logins.Clients(site, 2)
    try:
        assert len(clients.bodies()) == 2
        clients.take([b"{}", b"{}"])
        with pytest.raises(cases.Lie, match="registration/start: the response has no `handle`"):
            clients.bodies()
    finally:
        clients.stop()


def test_a_refused_step_ends_the_measurement(site):
    site.nodes[0].admin("app", "policy", "demo", "--set", "registration=admin")
    with pytest.raises(cases.Lie, match="another status than expected"):
        logins.measured(site, 2)


def test_requests_and_keyed_requests_are_counted(site):
    for options in ({}, {"body": 512, "is_keyed": True}):
        results, taken = site.measured(lambda options=options: site.send(40, **options), "a test")
        row = sites.rates(results, taken)
        assert row["gateway_us"] > 0 and row["per_second"] > 0


def test_a_filled_deployment_serves_its_sessions(tmp_path, site, tools):
    data, ids = tmp_path / "data", tmp_path / "key-ids"
    filled = run("bench", "fill", "--in", data, "--count", 30, "--key-ids", ids, "--json")
    assert filled.returncode == 0, filled.err
    made = json.loads(filled.out)
    lines = ids.read_text().splitlines()
    assert made["sessions"] == len(set(lines)) == 30 and ids.stat().st_mode & 0o777 == 0o600

    again = run("bench", "fill", "--in", data, "--count", 30, "--key-ids", ids)
    assert again.returncode == 1 and "expected an empty folder" in again.err

    node = sites.Node(tmp_path, f"sqlite:{data}/countersign.db", "--upstream", f"http://127.0.0.1:{site.backend.port}", *sites.OPTIONS)
    with node:
        # Each session once, by the load generator, and one by other code.
        command = [tools / "load", "--port", node.port, "--authority", HOST, "--requests", 30, "--connections", 4, "--scheme",
                   "message-signatures", "--key-ids", ids, "--release", made["release"], "--secret",
                   cases.decode_secret(made["request_key"]).hex()]
        cases.checked(site.backend, command, 30, 0, passed=30)
        key = ReleaseKey(lines[7], made["request_key"], HOST, release=made["release"])
        with Connection(node.port, None, 20) as connection:
            connection.send(key.request("GET", "/countersign/v1/session"))
            answer = connection.answer()
            assert answer.status == 200 and b"account-7@example.com" in answer.body, answer.body


@pytest.mark.parametrize("options", [("--count", "0", "--app", "demo", "--release", "r_a"), ("--count", "2", "--app", "demo"), ("--count", "2", "--release", "r_a")])
def test_wrong_usage(options):
    assert run("bench", "clients", *options).returncode == 2


def test_a_round_with_a_503_is_repeated(monkeypatch):
    monkeypatch.setattr(meters.time, "sleep", lambda _: None)
    faults = [cases.Lie("load: request 1: another status\nHTTP/1.1 503 Service Unavailable"), None]

    def work() -> str:
        fault = faults.pop(0)
        if fault:
            raise fault
        return "whole"

    assert meters.repeated(work, "a test") == "whole" and not faults
    for lie, attempts in (("HTTP/1.1 401 Unauthorized", 1), ("HTTP/1.1 503 Service Unavailable", meters.ATTEMPTS)):
        faults = [cases.Lie(lie)] * 10
        with pytest.raises(cases.Lie):
            meters.repeated(work, "a test")
        assert 10 - len(faults) == attempts


COST = {"gateway_us": 20.0, "postgres_us": 100.0, "redis_us": 10.0, "per_second": 1_000.0}
SITE = {"name": "one node", "store": "postgres", "nodes": 1, "idle_ms": {"gateway": 1.0, "postgres": 2.0, "redis": 1.0},
        **dict.fromkeys(("get", "keyed", "login", "refresh", "signup"), COST)}
SESSION = {"sessions": 1_000, "first_gateway_us": 50.0, "first_postgres_us": 60.0, "gateway_us": 20.0, "gateway_least_us": 19.0,
           "ratio": 1.0, "ratio_of_leasts": 1.0, "start_seconds": 1.0, "check_seconds": 0.1, "rss": 30 << 20, "disk_bytes": 1_000.0, "memory_bytes": 400.0}
FIGURES = {"machine": "2 cores", "sites": [SITE], "sessions": [SESSION], "redis_bytes": 200.0,
           "guards": [{"guard": "file", "gateway_us": 20.0, "server_us": 0.0, "per_second": 1000}]}


def test_the_tables_compute_a_million_users():
    text = scale.tables(FIGURES)
    # 60 requests, 4 refreshes and the rest: 64.036 of a user a day, 10 µs of Redis' each.
    assert "| in all |  |  | **1,281 s** | **6,404 s** | **640 s** |" in text, text
    # All but the 57 GETs are changes: 7.036 a day, times 5 in the peak, of which 1,000 are possible a second.
    assert "| 2.5 million |" in text and text.index("| durable changes of PostgreSQL") < text.index("| Redis, one core")
    # One and a half sessions each.
    assert f"{1_500_000 * 400 / 2**30:.2f} GiB" in text and f"{1_500_000 * 1_000 / 2**30:.2f} GiB" in text


def test_the_page_gets_new_tables(tmp_path):
    page = tmp_path / "scale.md"
    page.write_text(f"before\n{scale.START}\nold\n{scale.END}\nbehind\n")
    for _ in range(2):
        scale.update(page, FIGURES)
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("\nbehind\n") and "old" not in text and text.count("### Replay guards") == 1
    page.write_text("no place for them")
    with pytest.raises(SystemExit):
        scale.update(page, FIGURES)


def test_the_page_of_the_documentation_has_the_tables():
    text = (ROOT / "docs/scale.md").read_text()
    part = text[text.index(scale.START):text.index(scale.END)]
    assert re.findall(r"^### (.*)$", part, re.MULTILINE) == [title for title, _ in scale.SECTIONS]
