"""`countersign reload` and SIGHUP apply changed settings atomically, and say what changed and what waits for a restart."""

import base64
import errno
import json
import os
import pathlib
import re
import signal
import socket
import ssl
import subprocess
import threading

import pytest

import processes
from backend import Backend
from gateway import Gateway, run
from needs import programs
from waiting import until


class Site:
    """A gateway with a settings file, before two backends that answer with their names."""

    def __init__(self, folder: pathlib.Path, *options: object, **settings: object):
        self.folder, self.path = folder, folder / "settings.json"
        self.one, self.two = (Backend(self.answering(name)) for name in ("one", "two"))
        # While `may_answer` is not set, both keep a request waiting; `asked` says that one has arrived.
        self.may_answer, self.asked = threading.Event(), threading.Event()
        self.may_answer.set()
        self.settings = {"upstream": self.one.url, **settings}
        self.write()
        self.gateway = Gateway(folder, "--config", self.path, *options)

    def answering(self, name: str):
        def answer(_, sock: socket.socket) -> None:
            self.asked.set()
            assert self.may_answer.wait(60)
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n" + name.encode())
        return answer

    def write(self, **settings: object) -> None:
        self.settings |= settings
        self.path.write_text(json.dumps(self.settings))

    def __enter__(self) -> "Site":
        self.gateway.start()
        self.gateway.add_app("demo")
        self.gateway.key = self.gateway.add_release()
        return self

    def __exit__(self, *_: object) -> None:
        self.gateway.__exit__()
        self.one.close()
        self.two.close()

    def reload(self) -> tuple[int, dict]:
        done = run("reload", "--json", "--data", self.gateway.data)
        return done.returncode, json.loads(done.out)

    def answer(self):
        return self.gateway.send(self.gateway.key.request())

    def notes(self) -> list[str]:
        return [event["message"] for event in self.gateway.events() if event.get("log") == "reload"]


def changed(report: dict) -> dict[str, tuple[str, str, bool]]:
    return {change["setting"]: (change["old"], change["new"], change["needs_restart"]) for change in report["changes"]}


def test_changed_settings_are_applied_and_named(tmp_path):
    with Site(tmp_path, "--tls", "off", "--deadline-idle", 70) as site:
        # Each worker has idle connections to the first backend, which must not be used again.
        assert [site.answer().body for _ in range(8)] == [b"one"] * 8
        site.write(upstream=site.two.url, limit_target=300, deadline_idle=9, workers=2, prefix="/other")
        status, report = site.reload()
        assert status == 0 and report["applied"] is True and report["problems"] == []
        # --workers is 2 already, and the option --deadline-idle counts before the file.
        assert changed(report) == {
            "upstream": (site.one.url, site.two.url, False), "limit-target": ("8192", "300", False),
            "prefix": ("/countersign/v1", "/other", True)}
        assert [site.answer().body for _ in range(8)] == [b"two"] * 8
        assert site.gateway.send(site.gateway.key.request(target="/" + "x" * 400)).status == 413
        # With the other prefix applied, the backend would be asked, and nobody but a signer may ask it.
        time_of = f"GET /countersign/v1/time HTTP/1.1\r\nHost: 127.0.0.1:{site.gateway.port}\r\n\r\n".encode()
        assert site.gateway.send(time_of).status == 200
        # What waits for a restart is named again, and the rest is not.
        status, report = site.reload()
        assert status == 0 and list(changed(report)) == ["prefix"]
        until(lambda: len(site.notes()) == 2)
        assert site.notes()[0].startswith(f"applied upstream {site.one.url} -> {site.two.url}, limit-target 8192 -> 300")
        assert "for a restart prefix /countersign/v1 -> /other" in site.notes()[0]
        text = run("reload", "--data", site.gateway.data)
        assert text.returncode == 0 and "needs a restart: prefix /countersign/v1 -> /other\n" in text.out


def test_limits_and_deadlines_of_open_connections(tmp_path):
    with Site(tmp_path, "--tls", "off") as site, site.gateway.connect() as line, site.gateway.connect() as other:
        line.send(site.gateway.key.request())
        assert line.answer().status == 200

        def send_altered(target: str) -> None:
            other.send(site.gateway.key.request("POST", target, body=b"x" * 1_000)[:-1] + b"y")

        def has_arrived(target: str) -> bool:
            return any(target.encode() in raw for raw in site.one.raw)

        # Held until it is verified, and therefore not forwarded.
        send_altered("/held")
        assert other.answer().status == 400 and not has_arrived("/held")
        site.write(deadline_idle=1, limit_held_body=10)
        assert site.reload()[0] == 0
        send_altered("/streamed")
        until(lambda: has_arrived("/streamed"))
        assert not has_arrived("/held")
        line.send(site.gateway.key.request())
        assert line.answer().status == 200
        assert line.sock.recv(1) == b""
        assert site.answer().status == 200


@pytest.mark.parametrize(("content", "named"), [
    ('{\n"upstream": "%(two)s",\n"limit_target": 1}', "settings.json: limit_target: `1`"),
    ('{"upstream": "%(two)s", "log": "/none/log"}', "--log: /none/log"),
    ('{"upstream": "http://nowhere.invalid:1"}', "--upstream: "),
    (None, "settings.json: cannot open"),
], ids=["a value", "no log", "no such host", "no file"])
def test_a_broken_file_changes_nothing(tmp_path, content, named):
    with Site(tmp_path, tls="off") as site:
        if content is None:
            site.path.unlink()
        else:
            site.path.write_text(content % {"two": site.two.url} if "%(" in content else content)
        status, report = site.reload()
        assert status == 1 and report["applied"] is False and report["changes"] == []
        assert any(named in problem["message"] for problem in report["problems"]), report
        assert site.answer().body == b"one"
        site.gateway.process.send_signal(signal.SIGHUP)
        until(lambda: len(site.notes()) == 2)
        assert all(note.startswith("nothing was applied: ") for note in site.notes())
        assert site.answer().body == b"one"
        # With the file as it was, all is well.
        site.write()
        assert site.reload()[0] == 0


def make_certificate(folder: pathlib.Path, name: str) -> tuple[pathlib.Path, pathlib.Path]:
    certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                    "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
                   check=True, capture_output=True)
    key.chmod(0o600)
    return certificate, key


def test_another_certificate(tmp_path):
    (first, first_key), (second, second_key) = make_certificate(tmp_path, "first"), make_certificate(tmp_path, "second")
    site = Site(tmp_path, tls=f"{first},{first_key}")
    site.gateway.certificate = first

    def shown() -> str:
        return ssl.get_server_certificate(("127.0.0.1", site.gateway.port))

    with site:
        assert shown() == first.read_text()
        site.write(tls=f"{second},{first_key}")
        status, report = site.reload()
        assert status == 1 and "is not the key of the certificate" in report["problems"][0]["message"]
        assert shown() == first.read_text()
        site.write(tls=f"{second},{second_key}")
        status, report = site.reload()
        assert status == 0 and report["read_again"][:2] == [str(second), str(second_key)]
        assert shown() == second.read_text()
        # A listener without TLS is another one.
        site.write(tls="off")
        status, report = site.reload()
        assert status == 0 and changed(report)["tls"][2] is True
        assert shown() == second.read_text()


def test_another_log_and_another_sampling(tmp_path):
    with Site(tmp_path, "--tls", "off", log=str(tmp_path / "first.jsonl")) as site:
        stranger = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{site.gateway.port}\r\n\r\n".encode()
        site.gateway.send(stranger)
        until(lambda: (tmp_path / "first.jsonl").read_text())
        site.write(log=str(tmp_path / "second.jsonl"), log_sample=1)
        assert site.reload()[0] == 0
        for _ in range(5):
            site.gateway.send(stranger)
        until(lambda: '"unsigned"' in (tmp_path / "second.jsonl").read_text())
        size = (tmp_path / "first.jsonl").stat().st_size
        site.gateway.send(site.gateway.key.request())
        until(lambda: '"app":"demo"' in (tmp_path / "second.jsonl").read_text())
        assert (tmp_path / "first.jsonl").stat().st_size == size
        lines = [json.loads(line) for line in (tmp_path / "second.jsonl").read_text().splitlines()]
        assert len([line for line in lines if line.get("code") == "unsigned" and "log" not in line]) == 1
        # A renamed file is opened anew.
        (tmp_path / "second.jsonl").rename(tmp_path / "third.jsonl")
        site.gateway.process.send_signal(signal.SIGHUP)
        until((tmp_path / "second.jsonl").exists)
        # Also when the settings are refused: the renamed file must not grow until they are mended.
        (tmp_path / "second.jsonl").rename(tmp_path / "fourth.jsonl")
        site.write(limit_head="none")
        assert site.reload()[0] == 1
        until((tmp_path / "second.jsonl").exists)
        size = (tmp_path / "fourth.jsonl").stat().st_size
        site.gateway.send(site.gateway.key.request())
        until(lambda: '"app":"demo"' in (tmp_path / "second.jsonl").read_text())
        assert (tmp_path / "fourth.jsonl").stat().st_size == size


def test_a_log_that_nobody_reads_is_refused_at_once(tmp_path):
    """A named pipe; opening it for writing waits for a reader unless that is asked not to."""
    os.mkfifo(tmp_path / "pipe", 0o600)
    with Site(tmp_path, "--tls", "off", log=str(tmp_path / "log")) as site:
        site.write(log=str(tmp_path / "pipe"))
        status, report = site.reload()
        assert status == 1, report
        assert "pipe" in json.dumps(report["problems"]) and site.answer().status == 200


def test_fields_methods_and_audience(tmp_path):
    with Site(tmp_path, "--tls", "off") as site:
        site.gateway.admin("app", "policy", "demo", "--set", "assertion=on")
        override = [("x-http-method-override", "PATCH")]

        def audience() -> str:
            assert site.gateway.send(site.gateway.key.request(fields=override)).status == 200
            body = site.one.seen[-1].get("countersign-assertion").split(".")[1]
            return json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))["aud"]

        assert audience() == site.one.url
        assert site.one.seen[-1].get("x-http-method-override") is None
        assert site.gateway.send(site.gateway.key.request("M-SEARCH", "/")).status >= 400
        site.write(forward_caller_fields="x-http-method-override", allow_methods="M-SEARCH", assertion_audience="urn:other")
        assert site.reload()[0] == 0
        assert audience() == "urn:other"
        assert site.one.seen[-1].get("x-http-method-override") == "PATCH"
        assert site.gateway.send(site.gateway.key.request("M-SEARCH", "/")).status == 200
        assert site.one.seen[-1].method == "M-SEARCH"


def test_proxy_headers(tmp_path):
    with Site(tmp_path, "--tls", "off", trusted_proxies="127.0.0.0/8") as site:
        header = b"PROXY TCP4 192.0.2.9 127.0.0.1 1 443\r\n"
        assert site.gateway.send(header + site.gateway.key.request()).status == 400
        site.write(proxy_protocol="require")
        assert site.reload()[0] == 0
        assert site.gateway.send(header + site.gateway.key.request()).status == 200
        assert site.one.seen[-1].get("countersign-client") == "192.0.2.9"
        site.write(proxy_protocol="off")
        assert site.reload()[0] == 0
        assert site.answer().status == 200


def test_connections_to_the_backend(tmp_path):
    """Of six requests at once, four find no connection of their worker's under the lower limit, and may not wait."""
    with Site(tmp_path, "--tls", "off", "--workers", 2) as site:
        answer = site.answering("one")

        def statuses(all_arrive: bool) -> list[int]:
            released, count = threading.Event(), len(site.one.seen)

            def held(seen, sock: socket.socket) -> None:
                released.wait(60)
                answer(seen, sock)

            site.one.answer = held
            lines = [site.gateway.connect() for _ in range(6)]
            for line in lines:
                line.send(site.gateway.key.request())
            if all_arrive:
                until(lambda: len(site.one.seen) == count + 6)
            else:
                until(lambda: len([event for event in site.gateway.events() if event.get("code") == "upstream-busy"]) >= 4)
            released.set()
            found = sorted(line.answer().status for line in lines)
            for line in lines:
                line.sock.close()
            return found

        assert statuses(all_arrive=True) == [200] * 6
        site.write(limit_upstream_connections=2, limit_upstream_waiting=0)
        assert site.reload()[0] == 0
        assert statuses(all_arrive=False)[2:] == [503] * 4


def test_the_command_leaves_the_file_to_the_server(tmp_path):
    """With the file named in the command's own environment, the server reports all that is wrong with it."""
    with Site(tmp_path, "--tls", "off") as site:
        environment = {"COUNTERSIGN_CONFIG": str(site.path)}
        for content, lines in [('{"limit_target": 1,\n"nonsense": 2,\n"deadline_idle": 0}', [1, 2, 3]), ('{"limit_target"', [1])]:
            site.path.write_text(content)
            for more in ({"COUNTERSIGN_DATA": "/none"}, {}):
                done = run("reload", "--json", "--data", site.gateway.data, environment=environment | more)
                assert done.returncode == 1, done.err
                assert [problem["line"] for problem in json.loads(done.out)["problems"]] == lines
            done = run("reload", "--json", environment=environment | {"COUNTERSIGN_DATA": str(site.gateway.data)})
            assert done.returncode == 1, done.err
        # Where nothing else names the folder, it takes a file that can be read.
        done = run("reload", environment=environment)
        assert done.returncode == 2 and "settings.json: not JSON" in done.err
        site.path.write_text(json.dumps({"data": str(site.gateway.data), "limit_target": 1}))
        assert run("reload", environment=environment).returncode == 1


def test_trusted_proxies_and_rules_of_heads(tmp_path):
    with Site(tmp_path, "--tls", "off", underscore_fields="keep") as site:
        odd = [("odd_name", "1")]
        assert site.gateway.send(site.gateway.key.request(fields=odd)).status == 200
        assert site.one.seen[-1].get("odd_name") == "1"
        forwarded = [("x-forwarded-for", "192.0.2.7")]
        site.gateway.send(site.gateway.key.request(fields=forwarded))
        assert site.one.seen[-1].get("countersign-client") == "127.0.0.1"
        site.write(trusted_proxies="127.0.0.0/8", underscore_fields="refuse")
        assert site.reload()[0] == 0
        site.gateway.send(site.gateway.key.request(fields=forwarded))
        assert site.one.seen[-1].get("countersign-client") == "192.0.2.7"
        assert site.gateway.send(site.gateway.key.request(fields=odd)).status == 400
        site.write(trusted_proxies=None)
        assert site.reload()[0] == 0
        site.gateway.send(site.gateway.key.request(fields=forwarded))
        assert site.one.seen[-1].get("countersign-client") == "127.0.0.1"


def test_a_reload_under_load_loses_no_request(tmp_path):
    """Between two backends, while some clients keep their connections and others open one for each request."""
    with Site(tmp_path, "--tls", "off", "--limit-address-requests", 10_000) as site:
        stopping, wrong, answers = threading.Event(), [], {b"one": 0, b"two": 0}
        lock = threading.Lock()

        def send(keeps: bool) -> None:
            try:
                line = site.gateway.connect()
                while not stopping.is_set():
                    line.send(site.gateway.key.request())
                    answer = line.answer()
                    with lock:
                        answers[answer.body] += 1
                    if not keeps:
                        line.sock.close()
                        line = site.gateway.connect()
                line.sock.close()
            except Exception as error:  # noqa: BLE001 - whatever goes wrong is a lost request
                wrong.append(repr(error))

        threads = [threading.Thread(target=send, args=(number % 2 == 0,)) for number in range(6)]
        for thread in threads:
            thread.start()
        try:
            for number in range(20):
                site.write(upstream=(site.two if number % 2 == 0 else site.one).url, deadline_head=10 + number)
                status, report = site.reload()
                assert status == 0 and "upstream" in changed(report), report
        finally:
            stopping.set()
            for thread in threads:
                thread.join()
        assert wrong == []
        assert min(answers.values()) > 50, answers


def test_reloads_at_once_come_one_after_the_other(tmp_path):
    with Site(tmp_path, "--tls", "off") as site:
        reports, lock = [], threading.Lock()

        def reload() -> None:
            report = site.reload()
            with lock:
                reports.append(report)

        site.write(limit_target=4_000)
        threads = [threading.Thread(target=reload) for _ in range(8)]
        for thread in threads:
            thread.start()
        for _ in range(8):
            site.gateway.process.send_signal(signal.SIGHUP)
        for thread in threads:
            thread.join()
        assert [status for status, _ in reports] == [0] * 8
        # One of them, or a signal, found the change; all others found it in place.
        until(lambda: len(site.notes()) >= 9)
        assert len([note for note in site.notes() if "limit-target 8192 -> 4000" in note]) == 1
        assert site.answer().status == 200


def test_a_reload_during_a_hand_over_is_refused(tmp_path):
    """While the successor drains the old process, the signal to the old one changes nothing; the successor takes reloads."""
    with Site(tmp_path, "--tls", "off") as site:
        old = site.gateway.process
        # A request in flight, because the old process ends as soon as it has none.
        site.may_answer.clear()
        with site.gateway.connect() as line:
            line.send(site.gateway.key.request())
            assert site.asked.wait(60)
            with open(site.gateway.log_path, "ab") as log:
                new = processes.start(site.gateway.command("--takeover"), stdout=subprocess.PIPE, stderr=log, stdin=subprocess.DEVNULL)
            site.gateway.process = new
            assert new.stdout.readline().startswith(b"listening on ")
            old.send_signal(signal.SIGHUP)
            until(lambda: site.notes() and site.notes()[-1].startswith("nothing was applied: a restart is under way"))
            site.may_answer.set()
            assert line.answer().status == 200
            site.write(limit_target=300)
            until(lambda: run("reload", "--data", site.gateway.data).returncode == 0)
            assert site.gateway.send(site.gateway.key.request(target="/" + "x" * 400)).status == 413
        assert old.wait(60) == 0


def test_signals_reach_the_main_thread_alone(tmp_path):
    """A thread that does not block a signal takes it while the main thread is busy, and the signal ends the process."""
    signals = sum(1 << number - 1 for number in (signal.SIGHUP, signal.SIGINT, signal.SIGUSR1, signal.SIGTERM))
    with Site(tmp_path, "--tls", "off") as site:
        main = site.gateway.process.pid
        threads = {
            int(task.name): int(re.search(r"SigBlk:\s*(\w+)", (task / "status").read_text())[1], 16)
            for task in pathlib.Path(f"/proc/{main}/task").iterdir()
        }
        assert len(threads) > 5
        assert [thread for thread, blocked in threads.items() if thread != main and blocked & signals != signals] == []


def test_a_reload_while_the_successor_starts_is_refused(tmp_path):
    with Site(tmp_path, "--tls", "off") as site:
        # A process that asks for the hand-over, and then says nothing more.
        asker = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        asker.connect(str(site.gateway.data / "control"))
        asker.send(b"take-over 1")
        assert asker.recv(512)
        status, report = site.reload()
        assert status == 1 and "a restart is under way" in report["problems"][0]["message"]
        asker.close()
        until(lambda: site.reload()[0] == 0)
        assert site.answer().status == 200


def test_a_reload_that_waits_keeps_no_hand_over_waiting(tmp_path):
    """The control socket answers in a hand-over, although a reload by SIGHUP waits for a file, as it may for a resolver."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with Site(tmp_path, "--tls", "off") as site:
        site.write(upstream="https://127.0.0.1:1", upstream_ca=str(pipe))
        site.gateway.process.send_signal(signal.SIGHUP)
        writers: list[int] = []

        def is_read() -> bool:
            try:
                writers.append(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
            except OSError as error:
                assert error.errno == errno.ENXIO
            return writers != []

        until(is_read)
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asker:
                asker.connect(str(site.gateway.data / "control"))
                asker.send(b"take-over 1")
                assert asker.recv(512)
                status, report = site.reload()
                assert status == 1 and "a restart is under way" in report["problems"][0]["message"]
                # The log has a thread of its own.
                until(lambda: len(site.notes()) == 1)
        finally:
            # Without it the server reads the pipe, and ends on no signal.
            os.close(writers[0])
        until(lambda: len(site.notes()) == 2)
        assert "--upstream-ca" in site.notes()[1] and site.answer().body == b"one"


def test_no_server(tmp_path):
    (tmp_path / "data").mkdir(mode=0o700)
    done = run("reload", "--data", tmp_path / "data")
    assert done.returncode == 3 and "no server runs on" in done.err


@programs("runuser")
def test_only_the_server_s_user_may_ask(tmp_path):
    with Site(tmp_path, "--tls", "off") as site:
        assert (site.gateway.data / "control").stat().st_mode & 0o777 == 0o600
        for folder in (tmp_path, *tmp_path.parents):
            if folder != pathlib.Path("/tmp") and str(folder).startswith("/tmp"):
                folder.chmod(0o755)
        done = run("reload", "--data", site.gateway.data, prefix=("runuser", "-u", "nobody", "--"))
        assert done.returncode in (1, 3), done.err
        # Of this reload alone, which comes later, the log has a line.
        site.reload()
        until(site.notes, "a line of the log")
        assert len(site.notes()) == 1
