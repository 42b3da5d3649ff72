"""The page of `/metrics`: `promtool check metrics` finds nothing to object to in Prometheus' text, and an OpenMetrics parser reads
the other form; the histograms agree with the counts; the figures are those of the process; and what strangers send makes no series."""

import calendar
import json
import os
import socket
import subprocess
import threading
import time

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_prometheus

import needs
from backend import Backend, Seen, ok
from clock import Clock
from gateway import run
from person import Person
from test_metrics import Administered
from waiting import HANGS, until
from wire import Closed

OPENMETRICS = "application/openmetrics-text"
# What Prometheus 2.42 sends.
SCRAPER = ("application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
           "text/plain;version=0.0.4;q=0.5,*/*;q=0.1")


class Behaviour:
    """Of the backend: `/slow` takes 1.6 seconds, and `/held` until it is let go."""

    def __init__(self, clock: Clock):
        self.clock, self.go = clock, threading.Event()

    def __call__(self, seen: Seen, sock: socket.socket) -> None:
        if seen.target == "/slow":
            self.clock.advance(1.6)
        if seen.target == "/held":
            assert self.go.wait(HANGS)
        if seen.target == "/closes":
            raise Closed
        ok(seen, sock)


class Page:
    def __init__(self, gateway: Administered, accept: str | None = None):
        fields = {"Accept": accept} if accept else {}
        answer = gateway.get("/metrics", Authorization=f"Bearer {gateway.token}", **fields)
        assert answer.status == 200
        self.type, self.text = answer.headers["Content-Type"], answer.read().decode()
        parse = parse_openmetrics if self.type.startswith(OPENMETRICS) else parse_prometheus
        self.families = list(parse(self.text))

    def sum(self, name: str, **labels: str) -> float:
        found = [sample.value for family in self.families for sample in family.samples
                 if sample.name == name and labels.items() <= sample.labels.items()]
        assert found, f"no {name} {labels}"
        return sum(found)

    def series(self) -> set[tuple]:
        return {(sample.name, tuple(sorted(sample.labels.items()))) for family in self.families for sample in family.samples}


@pytest.fixture
def front(tmp_path):
    clock = Clock(tmp_path)
    with Backend(Behaviour(clock)) as backend:
        gateway = Administered(tmp_path, "--upstream", backend.url, clock=clock)
        gateway.backend = backend
        with gateway:
            gateway.add_app("demo", registration="open", legacy_host="127.0.0.1")
            gateway.admin("route", "set", "demo", "/open", "--require", "open")
            gateway.key = gateway.add_release()
            yield gateway


def traffic(front: Administered) -> None:
    """Some of each: accepted, refused, open, failed, a login and a refusal of one."""
    for _ in range(5):
        front.send(front.key.request())
    same = front.key.request()
    front.send(same)
    front.send(same)
    front.send(front.key.request("POST", "/closes", b"x"))
    front.send(f"GET /open HTTP/1.1\r\nHost: {front.key.authority}\r\n\r\n".encode())
    person = Person(front, front.folder / "alice").signs_up().logs_in()
    assert person.run("logout").returncode == 0
    wrong = person.run("login", "--account", person.name, "--password-stdin", stdin="wrong\n")
    assert wrong.returncode == 1, wrong.err
    assert front.send(front.key.request("POST", "/countersign/v1/login/start", b"{}")).status == 400


@needs.programs("promtool")
@pytest.mark.parametrize("kind", ["traffic", "empty"])
def test_promtool_accepts_the_page(front, kind):
    if kind == "traffic":
        traffic(front)
    page = Page(front)
    assert page.type == "text/plain; version=0.0.4; charset=utf-8" and page.text.endswith("\n")
    done = subprocess.run(["promtool", "check", "metrics"], input=page.text.encode(), capture_output=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, b"")
    # It finds faults where there are any.
    broken = subprocess.run(["promtool", "check", "metrics"], input=page.text.replace("_total", "_count").encode(),
                            capture_output=True, check=False)
    assert broken.returncode != 0


def test_openmetrics_has_the_same_figures(front):
    traffic(front)
    plain, page = Page(front), Page(front, SCRAPER)
    assert page.type == "application/openmetrics-text; version=1.0.0; charset=utf-8" and page.text.endswith("\n# EOF\n")
    assert plain.series() == page.series()
    kinds = {family.name: (family.type, family.unit) for family in page.families}
    assert kinds["countersign_requests"] == ("counter", "")
    assert kinds["countersign_request_duration_seconds"] == ("histogram", "seconds")
    assert kinds["countersign_held_body_bytes"] == ("gauge", "bytes")
    assert kinds["countersign_build"] == ("info", "")
    assert kinds["process_cpu_seconds"] == ("counter", "seconds")
    assert all(family.documentation for family in page.families + plain.families)


def test_which_form_is_sent(tmp_path):
    with Administered(tmp_path) as running:
        for accept, is_open in [
            (None, False), ("", False), ("*/*", False), ("text/plain", False), (SCRAPER, True), (OPENMETRICS, True),
            (f"{OPENMETRICS};version=1.0.0;q=0.4, text/plain;q=0.3", True),
            (f"{OPENMETRICS};q=0.3, text/plain;q=0.4", False), (f"{OPENMETRICS};version=2.0.0", False),
            (f"{OPENMETRICS};q=0", False), (f"{OPENMETRICS.upper()} ; VERSION=1.0.0", True),
            (f"{OPENMETRICS};q=nothing", False), (f"{OPENMETRICS};q=nan", False), ("," * 2000, False),
        ]:
            assert Page(running, accept).type.startswith(OPENMETRICS) == is_open, accept


def test_histograms_agree_with_the_counts(front):
    traffic(front)
    front.send(front.key.request(target="/slow"))
    page = Page(front)
    labels = {"app": "demo", "scheme": "message-signatures"}
    for outcome in ("accepted", "replayed", "upstream-closed", "malformed"):
        count = page.sum("countersign_requests_total", outcome=outcome, **labels)
        assert count == page.sum("countersign_request_duration_seconds_count", outcome=outcome, **labels), outcome
    # Those without a release.
    assert page.sum("countersign_request_duration_seconds_count", outcome="open", scheme="") == 1
    name = "countersign_upstream_duration_seconds"
    # The authority's own routes have no backend; the slow request is between one second and 2.5.
    assert page.sum(f"{name}_count", outcome="accepted", **labels) == 7
    assert page.sum(f"{name}_bucket", outcome="accepted", le="1.0", **labels) == 6
    assert page.sum(f"{name}_bucket", outcome="accepted", le="2.5", **labels) == 7
    assert 1.6 <= page.sum(f"{name}_sum", outcome="accepted", **labels) < 2.5
    assert page.sum(f"{name}_count", outcome="upstream-closed", **labels) == 1
    assert not [sample for sample in page.series() if sample[0] == f"{name}_count" and ("outcome", "replayed") in sample[1]]
    buckets = [sample for family in page.families if family.name == "countersign_request_duration_seconds"
               for sample in family.samples if sample.name.endswith("_bucket") and sample.labels["outcome"] == "accepted"]
    values = [sample.value for sample in buckets]
    assert values == sorted(values) and buckets[-1].labels["le"] == "+Inf"
    assert page.sum("countersign_request_duration_seconds_sum", outcome="accepted", **labels) >= \
        page.sum(f"{name}_sum", outcome="accepted", **labels)


def test_the_gauges_of_a_request_on_its_way(front):
    assert Page(front).sum("countersign_requests_in_flight") == 0
    seen = []

    def becomes(*gauges: int) -> bool:
        # The connections are as of the last second.
        front.clock.advance(0.2)
        page = Page(front)
        seen.append((page.sum("countersign_requests_in_flight"), page.sum("countersign_upstream_connections", state="in-use")))
        return seen[-1] == gauges

    thread = threading.Thread(target=front.send, args=(front.key.request(target="/held"),))
    thread.start()
    until(lambda: becomes(1, 1), lambda: seen)
    front.backend.answer.go.set()
    thread.join()
    until(lambda: becomes(0, 0), lambda: seen)
    assert max(seen) == (1, 1)
    page = Page(front)
    assert page.sum("countersign_upstream_connections", state="idle") == 1
    assert page.sum("countersign_upstream_connections_limit") == 1024 and page.sum("countersign_upstream_waiting") == 0


def test_what_the_authority_and_the_store_did(front):
    before = Page(front).sum("countersign_store_write_duration_seconds_count")
    traffic(front)
    page = Page(front)
    assert page.sum("countersign_logins_total", outcome="succeeded") >= 1
    assert page.sum("countersign_logins_total", outcome="malformed") == 1
    assert page.sum("countersign_login_starts_total") == page.sum("countersign_logins_total", outcome="succeeded") + 1
    assert page.sum("countersign_store_write_duration_seconds_count") > before
    assert page.sum("countersign_store_queue") == 0 and page.sum("countersign_store_write_failures_total") == 0
    assert page.sum("countersign_upstream_errors_total", kind="upstream-closed") == 1
    assert page.sum("countersign_upstream_errors_total") == 1
    assert page.sum("countersign_refusals_total", code="replayed") == 1
    assert page.sum("countersign_refusals_total", code="unsigned") == 0
    assert page.sum("countersign_replay_fill_ratio") == pytest.approx(
        page.sum("countersign_replay_entries") / page.sum("countersign_replay_capacity"))


def test_the_figures_of_the_process(front):
    before, page = front.busy() / 1000, Page(front)
    assert page.sum("countersign_build_info") == 1
    version = json.loads(run("version", "--json").out)["version"]
    assert page.sum("countersign_build_info", version=version) == 1
    pem = (front.data / "tls/certificate.pem").read_bytes()
    done = subprocess.run(["openssl", "x509", "-noout", "-enddate"], input=pem, capture_output=True, check=True)
    end = time.strptime(done.stdout.decode().strip(), "notAfter=%b %d %H:%M:%S %Y %Z")
    assert page.sum("countersign_certificate_expiry_timestamp_seconds") == calendar.timegm(end)
    assert page.sum("process_resident_memory_bytes") == pytest.approx(front.rss(), rel=0.2)
    assert page.sum("process_virtual_memory_bytes") > page.sum("process_resident_memory_bytes")
    descriptors = len(os.listdir(f"/proc/{front.process.pid}/fd"))
    assert abs(page.sum("process_open_fds") - descriptors) <= 3 < page.sum("process_max_fds")
    assert max(0, before - 0.1) < page.sum("process_cpu_seconds_total") <= front.busy() / 1000 + 0.1
    until(lambda: front.clock.advance(1) or Page(front).sum("countersign_loop_lag_seconds_count") >= 4, "the loops do not tick")


def test_the_last_backup(front):
    assert Page(front).sum("countersign_backup_last_success_timestamp_seconds") == 0
    made = json.loads(run("backup", front.folder / "backup", "--data", front.data, "--json").out)["made"]
    assert Page(front).sum("countersign_backup_last_success_timestamp_seconds") == made
    record = front.data / "last-backup"
    record.write_text("damaged")
    assert Page(front).sum("countersign_backup_last_success_timestamp_seconds") == 0
    record.unlink()


def test_strangers_make_no_series(front):
    traffic(front)
    front.send(f"GET / HTTP/1.1\r\nHost: {front.key.authority}\r\n\r\n".encode())
    front.send(f"GET / HTTP/1.1\r\nHost: other.example\r\n\r\n".encode())
    unknown = type(front.key)("r_unknown", front.key.secret, front.key.authority)
    front.send(unknown.request())
    before = Page(front).series()
    for number in range(150):
        stranger = type(front.key)(f"r_stranger{number}", front.key.secret, front.key.authority, release=f"r_other{number}")
        front.send(stranger.request(target=f"/path{number}"))
        front.send(f"GET /{number} HTTP/1.1\r\nHost: host{number}.example\r\nUser-Agent: {number}\r\n\r\n".encode())
        front.send(f"GET /open/{number} HTTP/1.1\r\nHost: {front.key.authority}\r\n\r\n".encode())
    assert Page(front).series() == before


def test_refreshes(front):
    front.admin("app", "policy", "demo", "--set", "token-lifetime=1s")
    person = Person(front, front.folder / "bob", "bob").signs_up().logs_in()
    assert not [sample for sample in Page(front).series() if sample[0] == "countersign_refreshes_total"]
    front.clock.advance(2.2)
    # The backend of this gateway echoes nothing, so the call's text is not read.
    assert person.run("request", "/").returncode == 0
    page = Page(front)
    assert page.sum("countersign_refreshes_total", outcome="succeeded") == page.sum("countersign_refreshes_total") >= 1
