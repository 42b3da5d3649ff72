"""The administrators' listener: `/metrics` for a caller with the token, in a form that Prometheus' parser
reads."""

import stat
import time
import urllib.error
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gateway import Gateway
from ports import reserve_port


class Administered(Gateway):
    def __init__(self, folder, *options, **named):
        self.admin_port = reserve_port()
        super().__init__(folder, *options, **named)

    def command(self, *options: object) -> list[str]:
        return super().command(*options, "--admin", f"127.0.0.1:{self.admin_port}")

    @property
    def token(self) -> str:
        return (self.data / "admin-token").read_text().strip()

    def get(self, path: str, *, method: str = "GET", **fields: str):
        request = urllib.request.Request(f"http://127.0.0.1:{self.admin_port}{path}", headers=fields, method=method)
        try:
            return urllib.request.urlopen(request, timeout=60)
        except urllib.error.HTTPError as error:
            return error

    def metrics(self) -> dict:
        """Samples by name and labels."""
        answer = self.get("/metrics", Authorization=f"Bearer {self.token}")
        assert answer.status == 200 and answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        text = answer.read().decode()
        assert text.endswith("\n")
        return {(sample.name, tuple(sorted(sample.labels.items()))): sample.value
                for family in text_string_to_metric_families(text) for sample in family.samples}

    def requests(self) -> dict[tuple[str, str, str], float]:
        found = {}
        for (name, labels), value in self.metrics().items():
            if name == "countersign_requests_total":
                of = dict(labels)
                found[of["release"], of["key"], of["outcome"]] = value
        return found


@pytest.fixture
def running(tmp_path):
    with Administered(tmp_path) as gateway:
        gateway.add_app("demo", schemes="message-signatures,form-md5")
        yield gateway


def test_only_with_the_token(running):
    path = running.data / "admin-token"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and len(running.token) >= 43
    for fields in [{}, {"Authorization": "Bearer "}, {"Authorization": f"Bearer {running.token}x"},
                   {"Authorization": f"Bearer {running.token[:-1]}"}, {"Authorization": f"Basic {running.token}"},
                   {"Authorization": running.token}, {"Authorization": f"Bearer  {running.token}"},
                   {"Authorization": f"Bearer {running.token.swapcase()}"}]:
        for route in ("/metrics", "/anything"):
            answer = running.get(route, **fields)
            assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, 'Bearer realm="countersign"'), fields
    assert running.get("/metrics", Authorization=f"bearer {running.token}").status == 200
    assert running.get("/anything", Authorization=f"Bearer {running.token}").status == 404
    assert running.get("/metrics", method="POST", Authorization=f"Bearer {running.token}").status == 405
    assert running.get("/health").status == 200
    assert running.token not in running.log_path.read_text()
    before = running.token
    running.stop()
    running.start()
    assert running.token == before, "each start makes another"


def test_requests_by_what_became_of_them(running):
    key = running.add_release()
    for _ in range(5):
        assert running.send(key.request()).status == 200
    same = key.request()
    running.send(same)
    running.send(same)
    running.send(b"GET / HTTP/1.1\r\nHost: " + key.authority.encode() + b"\r\n\r\n")
    assert running.requests() == {
        (key.key_id, "current", "accepted"): 6, (key.key_id, "", "replayed"): 1, ("", "", "unsigned"): 1}


def test_a_key_id_of_quotes_and_backslashes(running):
    strange = 'a"b\\c\\n{},='
    running.admin("release", "add", "demo", "--platform", "ios", "--version", "0.9", "--scheme", "form-md5",
                  "--key-id", strange, "--secret", "an-old-secret")
    body = "&".join(["app_id=a%22b%5Cc%5Cn%7B%7D%2C%3D", "plat=ios", "ver=0.9", "rand=abcdefgh1234",
                     "timestamp=" + time.strftime("%Y-%m-%d-%H:%M:%S", time.gmtime()), "sign=" + "0" * 32])
    running.send(f"POST /x HTTP/1.1\r\nHost: 127.0.0.1:{running.port}\r\nContent-Type: application/x-www-form-urlencoded"
                 f"\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
    assert running.requests() == {(strange, "", "bad-signature"): 1}


def test_the_process_itself(running):
    key = running.add_release()
    for _ in range(200):
        running.send(key.request())
    with running.connect() as held:
        held.send(key.request())
        held.answer()
        found = {name: value for (name, labels), value in running.metrics().items() if not labels}
    assert 1 <= found["countersign_connections"] <= 3
    assert found["countersign_replay_capacity"] == 65536
    # A quarter of the table is looked at, or all of a small one; 201 entries make the reckoning coarse, not wrong.
    assert 100 <= found["countersign_replay_entries"] <= 320
    assert abs(found["process_start_time_seconds"] - time.time()) < 60
    assert 0 <= found["countersign_uptime_seconds"] < 60
