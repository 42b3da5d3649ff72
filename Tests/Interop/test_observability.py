"""Examples/observability in a real Prometheus: `promtool` accepts the configuration and the rules; alerts fire by faults that
happen; every query of the dashboard is answered, with figures where there was traffic."""

import contextlib
import inspect
import json
import math
import pathlib
import re
import signal
import socket
import subprocess
import threading
import urllib.parse
import urllib.request

import pytest

import needs
import processes
from backend import Backend, Seen, ok
from person import Person
from ports import reserve_port
from products import ROOT
from test_metrics import Administered
from waiting import until

FOLDER = ROOT / "Examples/observability"
# What only other deployments have.
ELSEWHERE = ("countersign_replay_redis", "countersign_replay_postgres", "countersign_node_")
# What fires on a machine that has much other work.
BUSY = {"CountersignLoopsBusy", "CountersignBackendSlow"}
pytestmark = needs.programs("prometheus", "promtool", "openssl")


class Prometheus:
    """The server with the configuration and the rules of the examples, in seconds where they have minutes."""

    def __init__(self, folder: pathlib.Path, gateway: Administered):
        folder.mkdir()
        self.port = reserve_port()
        rules = re.sub(r"for: \d+[ms]", "for: 1s", re.sub(r"\[\d+m\]", "[10s]", (FOLDER / "alerts.yml").read_text()))
        config = (FOLDER / "prometheus.yml").read_text()
        for former, present in [("127.0.0.1:8444", f"127.0.0.1:{gateway.admin_port}"), ("15s", "1s"),
                                ("/etc/prometheus/countersign-token", str(gateway.data / "admin-token"))]:
            assert former in config
            config = config.replace(former, present)
        (folder / "alerts.yml").write_text(rules)
        (folder / "prometheus.yml").write_text(config)
        self.log = open(folder / "log", "wb")
        self.process = processes.start(
            ["prometheus", f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}",
             f"--web.listen-address=127.0.0.1:{self.port}"], stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL)

    def __enter__(self) -> "Prometheus":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(60)
        self.log.close()

    def get(self, path: str, **parameters: str) -> dict:
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/{path}?{query}", timeout=60) as answer:
            said = json.load(answer)
        assert said["status"] == "success", said
        return said["data"]

    def figures(self, expression: str) -> list[float]:
        return [float(found["value"][1]) for found in self.get("query", query=expression)["result"]]

    def firing(self) -> set[str]:
        return {alert["labels"]["alertname"] for alert in self.get("alerts")["alerts"] if alert["state"] == "firing"}

    def evaluations(self) -> dict[str, float]:
        """How often each group of rules was evaluated."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=60) as answer:
            found = re.findall(r'^prometheus_rule_group_iterations_total\{rule_group="(.*)"\} (\S+)$', answer.read().decode(), re.M)
        return {group: float(count) for group, count in found}

    def waits(self, what: str, holds) -> None:
        def does_hold() -> bool:
            with contextlib.suppress(OSError):
                return holds()
            return False

        until(does_hold, what)

    def fires(self, *names: str) -> None:
        self.waits(f"{names} do not fire", lambda: set(names) <= self.firing())


def overloaded(_: Seen, sock: socket.socket) -> None:
    sock.sendall(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")


class Traffic:
    """Sends requests of a kind in the background until it is left."""

    def __init__(self, *sends):
        self.sends, self.is_over = sends, threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self) -> None:
        while not self.is_over.wait(0.05):  # lint: the pace of a load
            for send in self.sends:
                with contextlib.suppress(OSError):
                    send()

    def __enter__(self) -> "Traffic":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.is_over.set()
        self.thread.join(30)


def write_certificate(gateway: Administered, days: int) -> None:
    """In the place where the gateway keeps its own."""
    folder = gateway.data / "tls"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    gateway.data.chmod(0o700)
    paths = folder / "certificate.pem", folder / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", str(days),
                    "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-out", paths[0], "-keyout",
                    paths[1]], check=True, capture_output=True)


@pytest.fixture
def watched(tmp_path):
    with Backend() as backend:
        gateway = Administered(tmp_path / "gateway", "--upstream", backend.url)
        gateway.backend = backend
        write_certificate(gateway, 300)
        with gateway:
            gateway.add_app("demo", registration="open", legacy_login="on", legacy_host="127.0.0.1")
            gateway.admin("app", "policy", "demo", "--set", "token-lifetime=1s")
            gateway.key = gateway.add_release()
            with Prometheus(tmp_path / "prometheus", gateway) as prometheus:
                prometheus.waits("it scrapes nothing", lambda: prometheus.figures('up{job="countersign"}') == [1])
                yield gateway, prometheus


@pytest.fixture
def stack():
    with contextlib.ExitStack() as stack:
        yield stack


def test_the_files_are_well_formed():
    for words in (["rules", "alerts.yml"], ["config", "--syntax-only", "prometheus.yml"]):
        done = subprocess.run(["promtool", "check", *words], cwd=FOLDER, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    text = (FOLDER / "alerts.yml").read_text()
    for page in re.findall(r"docs/[\w/-]+\.md", text):
        assert (ROOT / page).is_file(), page


def fires_by(series: dict[str, str], name: str, minutes: int, folder: pathlib.Path, labels: str = "") -> bool:
    """Whether the rule as it stands fires after so many minutes of these series, in Prometheus' notation of one
    value a minute. `labels` are those of the alert besides the instance."""
    rules = (FOLDER / "alerts.yml").read_text().split("- alert: ")
    rule = next(rule for rule in rules if rule.startswith(name + "\n"))
    severity = re.search(r"severity: (\w+)", rule).group(1)
    expression = f'ALERTS{{alertname="{name}",alertstate="firing"}}'
    alert = f'ALERTS{{alertname="{name}",alertstate="firing",instance="a",severity="{severity}"{labels}}}'
    verdicts = []
    for samples in ([], [{"labels": alert, "value": 1}]):
        path = folder / "test.yml"
        # JSON is YAML.
        path.write_text(json.dumps({
            "rule_files": [str(FOLDER / "alerts.yml")], "evaluation_interval": "1m", "tests": [{
                "interval": "1m", "input_series": [{"series": of, "values": values} for of, values in series.items()],
                "promql_expr_test": [{"expr": expression, "eval_time": f"{minutes}m", "exp_samples": samples}]}]}))
        done = subprocess.run(["promtool", "test", "rules", path], capture_output=True, text=True, check=False)
        verdicts.append(done.returncode == 0)
    assert verdicts[0] != verdicts[1], done.stdout + done.stderr
    return verdicts[1]


def test_one_unavailable_response_pages_nobody(tmp_path):
    def fires(unavailable: str, minutes: int) -> bool:
        series = {'countersign_unavailable_responses_total{instance="a"}': unavailable,
                  'countersign_requests_total{instance="a",outcome="accepted"}': "0+600x25"}
        return fires_by(series, "CountersignUnavailable", minutes, tmp_path)

    for minutes in range(1, 15):
        assert not fires("0x5 1x20", minutes), minutes
    assert fires("0+60x25", 10)


def test_guesses_are_seen_before_the_first_login_succeeds(tmp_path):
    def fires(**logins: str) -> bool:
        series = {'countersign_login_starts_total{instance="a"}': "0+120x25"}
        for outcome, values in logins.items():
            series[f'countersign_logins_total{{instance="a",outcome="{outcome}"}}'] = values
        return fires_by(series, "CountersignPasswordGuesses", 15, tmp_path)

    assert fires()
    assert fires(replayed="0+1x25")
    assert fires(succeeded="0+1x25")
    assert not fires(succeeded="0+120x25")


def test_a_backup_is_missed_after_a_week(tmp_path):
    def fires(made: int, minutes: int) -> bool:
        series = {'countersign_backup_last_success_timestamp_seconds{instance="a"}': f"{made}x{minutes}"}
        return fires_by(series, "CountersignBackupOverdue", minutes, tmp_path)

    # Time begins at 0 here, so that this one becomes a week old after ten minutes.
    made = 10 * 60 - 7 * 86_400
    assert not fires(made, 60)
    assert fires(made, 75)
    assert not fires(0, 75)


def buckets(name: str, *counts: tuple[str, int]) -> dict[str, str]:
    """A histogram whose counts grow by so many each minute."""
    return {f'{name}_bucket{{instance="a",le="{bound}"}}': f"0+{count}x40" for bound, count in counts}


# For each alert that no test raises on a gateway: figures by which it fires, figures of a healthy gateway,
# and the alert's own labels.
FIGURES: dict[str, tuple[dict[str, str], dict[str, str], str]] = {
    "CountersignAnswersCut": (
        {'countersign_upstream_errors_total{instance="a",kind="upstream-truncated"}': "0+6x40"},
        {'countersign_upstream_errors_total{instance="a",kind="upstream-truncated"}': "3x40"}, ""),
    "CountersignBackendSlow": (
        buckets("countersign_upstream_duration_seconds", ("0.1", 90), ("2.5", 90), ("10", 100), ("+Inf", 100)),
        buckets("countersign_upstream_duration_seconds", ("0.1", 100), ("2.5", 100), ("10", 100), ("+Inf", 100)), ""),
    "CountersignBackendConnectionsUsedUp": (
        {'countersign_upstream_waiting{instance="a"}': "1x40"}, {'countersign_upstream_waiting{instance="a"}': "0x40"}, ""),
    "CountersignAccountAttacked": (
        {'countersign_accounts_attacked{instance="a"}': "1x40"}, {'countersign_accounts_attacked{instance="a"}': "0x40"}, ""),
    "CountersignMaintenanceLong": (
        {'countersign_app_maintenance{instance="a",app="demo"}': "1x300"},
        {'countersign_app_maintenance{instance="a",app="demo"}': "1x20 0x300"}, ',app="demo"'),
    "CountersignReplays": (
        {'countersign_refusals_total{instance="a",code="replayed"}': "0+120x40"},
        {'countersign_refusals_total{instance="a",code="replayed"}': "0+6x40"}, ""),
    "CountersignReplayTableLarge": (
        {'countersign_replay_entries{instance="a"}': "13000000x40"}, {'countersign_replay_entries{instance="a"}': "100000x40"}, ""),
    "CountersignNodeStale": (
        {'countersign_node_fresh{instance="a"}': "0x40"}, {'countersign_node_fresh{instance="a"}': "1x40"}, ""),
    "CountersignClockOff": (
        {'countersign_node_clock_offset_seconds{instance="a"}': "1.5x40"},
        {'countersign_node_clock_offset_seconds{instance="a"}': "-0.5x40"}, ""),
    "CountersignRowsAltered": (
        {'countersign_row_findings{instance="a"}': "1x40", 'countersign_rows_refused_total{instance="a"}': "0x40"},
        {'countersign_row_findings{instance="a"}': "0x40", 'countersign_rows_refused_total{instance="a"}': "0x40"}, ""),
    "CountersignStoreFailing": (
        {'countersign_store_write_failures_total{instance="a"}': "0x20 1x20"},
        {'countersign_store_write_failures_total{instance="a"}': "0x40"}, ""),
    "CountersignStoreQueueLong": (
        {'countersign_store_queue{instance="a"}': "2000x40"}, {'countersign_store_queue{instance="a"}': "3x40"}, ""),
    "CountersignLoopsBusy": (
        buckets("countersign_loop_lag_seconds", ("0.1", 80), ("0.25", 100), ("+Inf", 100)),
        buckets("countersign_loop_lag_seconds", ("0.1", 100), ("0.25", 100), ("+Inf", 100)), ""),
    "CountersignBodiesHeld": (
        {'countersign_held_body_bytes{instance="a"}': "90x40", 'countersign_held_body_limit_bytes{instance="a"}': "100x40"},
        {'countersign_held_body_bytes{instance="a"}': "10x40", 'countersign_held_body_limit_bytes{instance="a"}': "100x40"}, ""),
    "CountersignDescriptorsUsedUp": (
        {'process_open_fds{instance="a",job="countersign"}': "90x40", 'process_max_fds{instance="a",job="countersign"}': "100x40"},
        {'process_open_fds{instance="a",job="countersign"}': "20x40", 'process_max_fds{instance="a",job="countersign"}': "100x40"},
        ',job="countersign"'),
    "CountersignRestarting": (
        {'process_start_time_seconds{instance="a",job="countersign"}': "1x5 2x5 3x5 4x25"},
        {'process_start_time_seconds{instance="a",job="countersign"}': "1x20 2x20"}, ',job="countersign"'),
}


@pytest.mark.parametrize("name", FIGURES)
def test_an_alert_fires_by_the_figures_of_its_fault(name, tmp_path):
    faulty, healthy, labels = FIGURES[name]
    times = (15, 17, 19, 22, 30, 280)
    assert any(fires_by(faulty, name, minutes, tmp_path, labels) for minutes in times)
    assert not any(fires_by(healthy, name, minutes, tmp_path, labels) for minutes in times)


def test_the_errors_of_one_app_are_not_hidden_by_the_others(tmp_path):
    def series(errors: str) -> dict[str, str]:
        name = "countersign_upstream_responses_total"
        return {f'{name}{{instance="a",app="small",class="5xx"}}': errors, f'{name}{{instance="a",app="small",class="2xx"}}': "0+54x40",
                f'{name}{{instance="a",app="large",class="2xx"}}': "0+60000x40"}

    assert fires_by(series("0+6x40"), "CountersignAppErrors", 20, tmp_path, ',app="small"')
    assert not fires_by(series("0+1x40"), "CountersignAppErrors", 20, tmp_path, ',app="small"')


def test_the_page_has_each_alert():
    page = (ROOT / "docs/operate/alerts.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| .+ \| (real|figures) \|$", page, re.M)
    alerts = re.findall(r"- alert: (\w+)", (FOLDER / "alerts.yml").read_text())
    assert sorted(name for name, _ in rows) == sorted(alerts)
    real = re.findall(r'"(Countersign\w+)"', inspect.getsource(test_alerts_fire_by_real_faults))
    assert {name for name, kind in rows if kind == "real"} == set(real)


def test_alerts_fire_by_real_faults(watched, stack):
    gateway, prometheus = watched
    with Traffic(lambda: gateway.send(gateway.key.request())):
        prometheus.waits("no rate of accepted requests", lambda: max(
            prometheus.figures('rate(countersign_requests_total{outcome="accepted"}[10s])'), default=0) > 0)
        evaluated = prometheus.evaluations()
        # An alert is pending first, and fires by a later evaluation.
        prometheus.waits("it evaluates no rules", lambda: all(prometheus.evaluations()[name] >= evaluated[name] + 3 for name in evaluated))
        assert prometheus.firing() <= BUSY, "nothing is wrong"
        # The backend goes.
        gateway.backend.close()
        prometheus.fires("CountersignBackendFailing")
    # It is back, and answers that it has too much to do.
    backend = stack.enter_context(Backend(overloaded, port=gateway.backend.port))
    with Traffic(lambda: gateway.send(gateway.key.request())):
        prometheus.fires("CountersignAppErrors")
    # It is back, as far as the rest needs it.
    backend.answer = ok
    # Passwords are guessed where old clients sign in, which read each answer as a success of HTTP.
    body = "username=somebody&password=guess"
    guess = (f"POST /login/login.php HTTP/1.1\r\nHost: {gateway.key.authority}\r\nContent-Length: {len(body)}\r\n"
             f"Content-Type: application/x-www-form-urlencoded\r\n\r\n{body}").encode()
    with Traffic(lambda: gateway.send(guess)):
        prometheus.fires("CountersignPasswordGuesses")
    # A flood of requests without a proof.
    with Traffic(*[lambda: gateway.send(f"GET / HTTP/1.1\r\nHost: {gateway.key.authority}\r\n\r\n".encode())] * 3):
        prometheus.fires("CountersignManyRefusals")
    # The replay guard is away, as far as requests can tell.
    drill = processes.start([gateway.binary, "drill", "replay", "--for", "40s", "--yes", "--data", gateway.data,
                              "--admin", f"127.0.0.1:{gateway.admin_port}"],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        with Traffic(lambda: gateway.send(gateway.key.request())):
            prometheus.fires("CountersignReplayGuardAway", "CountersignUnavailable")
    finally:
        drill.terminate()
        drill.communicate(timeout=60)
    # The certificate is replaced by one that ends tomorrow, while the gateway serves.
    write_certificate(gateway, 1)
    gateway.process.send_signal(signal.SIGHUP)
    prometheus.fires("CountersignCertificateEnds")
    gateway.stop()
    prometheus.fires("CountersignDown")
    gateway.start()
    prometheus.waits("it does not recover", lambda: "CountersignDown" not in prometheus.firing())


def expressions() -> list[tuple[str, str]]:
    """Of the dashboard, with its variables in place."""
    board = json.loads((FOLDER / "dashboard.json").read_text())
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    found = [(panel["title"], target["expr"]) for panel in board["panels"] for target in panel.get("targets", [])]
    for variable, value in [("$__rate_interval", "10s"), ("$instance", ".*"), ("$app", ".*")]:
        assert any(variable in expression for _, expression in found), variable
        found = [(title, expression.replace(variable, value)) for title, expression in found]
    assert not [expression for _, expression in found if "$" in expression]
    return found


def test_every_query_of_the_dashboard(watched, tmp_path):
    gateway, prometheus = watched
    alice = Person(gateway, tmp_path / "alice", release=json.loads(gateway.admin(
        "release", "add", "demo", "--platform", "ios", "--version", "2.0", "--json").out)).signs_up().logs_in()
    alice.run("request", "/")

    def asks() -> None:
        assert alice.run("request", "/").returncode == 0

    def signs_in() -> None:
        alice.logs_in()

    queries = expressions()
    with Traffic(lambda: gateway.send(gateway.key.request()), asks, signs_in,
                 lambda: gateway.send(f"GET / HTTP/1.1\r\nHost: {gateway.key.authority}\r\n\r\n".encode())):
        def missing() -> list[tuple[str, str]]:
            return [(title, expression) for title, expression in queries
                    if not any(name in expression for name in ELSEWHERE)
                    and not any(not math.isnan(figure) for figure in prometheus.figures(expression))]

        until(lambda: not missing(), lambda: f"no figures for {missing()}")
    assert len(queries) > 40
