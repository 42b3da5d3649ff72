"""The admin API: only a token with the operation's scope may call, what it changes is what the command of the same name
changes, and the audit log names the token. Its OpenAPI document describes every answer, which schemathesis tests; and a
command of another machine (`--api`) runs with the same result."""

import base64
import concurrent.futures
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import jsonschema_rs
import pytest

import processes
from clock import Clock
from gateway import BINARY, run
from signing import ReleaseKey
from test_metrics import Administered
from waiting import HANGS, until

ALL = ["apps:read", "apps:write", "releases:read", "releases:write", "accounts:read", "accounts:write", "accounts:verify", "accounts:recover", "sessions:read",
       "sessions:write", "audit:read", "webhooks:read", "webhooks:write", "server:read", "server:write"]

DOCUMENT = json.loads(run("openapi").out)


def bytes_read(deployment: "Deployment") -> int:
    """All that the server has read since its start, by the kernel's count."""
    counts = dict(line.split(": ") for line in pathlib.Path(f"/proc/{deployment.process.pid}/io").read_text().splitlines())
    return int(counts["rchar"])


class Deployment(Administered):
    """A gateway, and a client of its API with every scope."""

    compared = 0

    def __enter__(self) -> "Deployment":
        super().__enter__()
        self.all = self.token_for("all", ALL)
        return self

    def token_for(self, name: str, scopes: list[str], *options: object) -> str:
        made = self.admin("token", "add", name, "--scope", ",".join(scopes), "--json", *options)
        return json.loads(made.out)["token"]

    def call(self, method: str, path: str, body: object = None, *, token: str | None = None, raw: bytes | None = None,
             host: str | None = None, **fields: str) -> tuple[int, dict, dict]:
        """The status, the JSON and the fields of an answer."""
        data = raw if raw is not None else json.dumps(body).encode() if body is not None else None
        headers = {"Authorization": f"Bearer {self.all if token is None else token}"} if token != "" else {}
        if data is not None:
            headers["Content-Type"] = "application/json"
        headers |= {name.replace("_", "-"): value for name, value in fields.items()}
        if host:
            headers["Host"] = host
        request = urllib.request.Request(f"http://127.0.0.1:{self.admin_port}{path}", data, headers, method=method)
        try:
            answer = urllib.request.urlopen(request, timeout=60)
        except urllib.error.HTTPError as error:
            answer = error
        text = answer.read()
        found = json.loads(text) if text else {}
        if text:
            self.compare(method, path, answer.status, found)
        return answer.status, found, dict(answer.headers)

    def compare(self, method: str, path: str, status: int, answer: dict) -> None:
        """Every answer of a documented operation has the documented form."""
        for template, methods in DOCUMENT["paths"].items():
            pattern = re.sub(r"\\{\w+\\}", "[^/]+", re.escape(f"/api/v1{template}"))
            if method.lower() in methods and re.fullmatch(pattern, path.partition("?")[0]):
                response = methods[method.lower()]["responses"][str(status)]
                if "$ref" in response:
                    response = DOCUMENT["components"]["responses"][response["$ref"].rsplit("/", 1)[1]]
                schema = next(iter(response["content"].values()))["schema"]
                self.compared += 1
                jsonschema_rs.validate(schema | {"components": DOCUMENT["components"]}, answer)

    def code(self, *arguments: object, **options) -> tuple[int, str]:
        status, answer, _ = self.call(*arguments, **options)
        return status, answer.get("code", "")

    def audit(self) -> list[dict]:
        return self.call("GET", "/api/v1/audit?limit=500")[1]["records"]


@pytest.fixture
def served(tmp_path):
    with Deployment(tmp_path, clock=Clock(tmp_path)) as deployment:
        yield deployment


def test_a_team_is_set_up_over_the_api(served):
    call = served.call
    assert call("POST", "/api/v1/apps", {"app": "shop", "require": "signed", "settings": {"rate-account": "9/minute"}})[0] == 201
    status, made, _ = call("POST", "/api/v1/apps/shop/releases", {"platform": "ios", "version": "1.0"})
    assert status == 201 and len(base64.urlsafe_b64decode(made["secret"] + "==")) == 32
    key = ReleaseKey(made["key_id"], made["secret"], f"127.0.0.1:{served.port}")
    # The very next request of the app is judged by it.
    assert served.send(key.request()).status == 200
    assert call("PUT", "/api/v1/apps/shop/routes", {"prefix": "/pay", "require": "device", "methods": ["POST"],
                                                     "rate_account": "5/minute", "max_body": 4096})[0] == 200
    routes = call("GET", "/api/v1/apps/shop/routes")[1]["routes"]
    assert routes[0] == {"prefix": "/pay", "methods": ["POST"], "require": "device", "enforcement": None,
                         "observe_until": None, "limits": {"rate-account": "5/minute", "max-body": "4096"}}
    assert call("GET", "/api/v1/apps/shop/routes/test?method=POST&target=%2Fpay%3Fa=1")[1]["require"] == "device"
    assert call("DELETE", "/api/v1/apps/shop/routes?prefix=%2Fpay&methods=POST")[1]["removed"] == "/pay"
    assert call("POST", "/api/v1/apps/shop/accounts", {"account": "anna", "password": "correct horse battery"})[0] == 201
    assert call("POST", "/api/v1/apps/shop/accounts", {"account": "zoë / x"})[0] == 201
    accounts = call("GET", "/api/v1/apps/shop/accounts?limit=1")[1]
    assert [account["account"] for account in accounts["accounts"]] == ["anna"]
    accounts = call("GET", f"/api/v1/apps/shop/accounts?after={accounts['next']}")[1]
    assert [account["account"] for account in accounts["accounts"]] == ["zoë / x"] and accounts["next"] is None
    assert call("GET", "/api/v1/apps/shop/accounts/zo%C3%AB%20%2F%20x")[1]["state"] == "active"
    assert call("PUT", "/api/v1/apps/shop/accounts/anna/lock")[1]["state"] == "locked"
    assert call("DELETE", "/api/v1/apps/shop/accounts/anna/lock")[0] == 200
    assert call("PUT", "/api/v1/apps/shop/accounts/anna/user-id", {"user_id": 42})[1]["user_id"] == 42
    assert call("DELETE", "/api/v1/apps/shop/accounts/anna/user-id")[1]["user_id"] is None
    assert call("POST", "/api/v1/apps/shop/accounts/anna/reset", {"valid": "30m"})[1]["reset_code"]
    assert call("GET", "/api/v1/apps/shop/accounts/anna/export")[1]["account"]["account"] == "anna"
    assert call("GET", "/api/v1/apps/shop/accounts/anna/%65xport")[1]["account"]["account"] == "anna"
    assert [record["actor"]["name"] for record in served.audit() if record["action"] == "account.export"] == ["all"] * 2
    assert call("PUT", f"/api/v1/releases/{key.key_id}/retirement", {"at": "+7d", "update_url": "https://a.example"})[0] == 200
    assert call("GET", f"/api/v1/releases/{key.key_id}/impact")[1]["stage"] == "live"
    assert call("DELETE", f"/api/v1/releases/{key.key_id}/retirement")[1]["retired_at"] is None
    assert call("POST", f"/api/v1/releases/{key.key_id}/next-key", {})[1]["next_key"] is True
    assert call("DELETE", f"/api/v1/releases/{key.key_id}/next-key")[1]["next_key"] is False
    assert call("PUT", "/api/v1/apps/shop/maintenance", {"retry_after": "5m"})[1]["apps"][0]["retry_after"] == 300
    assert json.loads(served.send(key.request()).body)["code"] == "maintenance"
    assert call("DELETE", "/api/v1/apps/shop/maintenance")[0] == 200 and served.send(key.request()).status == 200
    assert call("POST", "/api/v1/apps/shop/accounts/anna/erase")[1]["erased"] is True
    assert call("GET", "/api/v1/audit/verification")[1]["findings"] == []
    token = next(one for one in call("GET", "/api/v1/tokens")[1]["tokens"] if one["name"] == "all")
    changes = [record for record in served.audit() if record["actor"]["kind"] == "token"]
    assert {record["action"] for record in changes} >= {
        "app.add", "release.add", "app.policy", "account.add", "account.lock", "account.erase", "release.retire",
        "release.next-key.add"}
    assert all(record["actor"] == {"kind": "token", "id": token["id"], "name": "all"} for record in changes)
    assert served.compared > 25
    # Nothing of a secret is in the audit log or the events.
    told = json.dumps(served.audit()) + served.log_path.read_text()
    assert made["secret"] not in told and "correct horse" not in told and served.all not in told


def test_each_operation_needs_its_scope(served):
    document = served.call("GET", "/api/openapi.json", token="")[1]
    operations = [(method.upper(), path, operation) for path, methods in document["paths"].items()
                  for method, operation in methods.items()]
    assert len(operations) > 40
    tokens, used = {}, set()
    for method, path, operation in operations:
        scopes = tuple(operation["description"].partition(".")[0].split("`")[1::2])
        assert 1 <= len(scopes) <= 2
        used |= set(scopes)
        if scopes not in tokens:
            tokens[scopes] = served.token_for(f"without-{len(tokens)}", [other for other in ALL if other not in scopes])
        for name in ("app", "key", "account", "device", "session", "event"):
            path = path.replace(f"{{{name}}}", "none")
        status, answer, _ = served.call(method, f"/api/v1{path}", token=tokens[scopes])
        assert (status, answer["code"]) == (403, "scope-missing"), operation["operationId"]
        assert all(scope in answer["detail"] for scope in scopes)
        assert served.code(method, f"/api/v1{path}", token="") == (401, "unauthorized")
    assert used == set(ALL)


def test_tokens(served):
    for wrong in ["cst_wrong", served.all[:-1], served.all + "x", "x"]:
        assert served.code("GET", "/api/v1/apps", token=wrong) == (401, "unauthorized")
    assert served.code("GET", "/api/v1/apps", Authorization="Basic x") == (401, "unauthorized")
    # The token of /metrics is none of the API, nor the other way round.
    assert served.code("GET", "/api/v1/apps", token=served.token) == (401, "unauthorized")
    assert served.get("/metrics", Authorization=f"Bearer {served.all}").status == 401
    short = served.token_for("short", ["apps:read"], "--expires", "+2s")
    assert served.call("GET", "/api/v1/apps", token=short)[0] == 200
    served.admin("token", "revoke", "all")
    assert served.code("GET", "/api/v1/apps") == (401, "unauthorized")
    served.clock.advance(2.2)
    assert served.code("GET", "/api/v1/apps", token=short) == (401, "unauthorized")
    path = served.data / "api-tokens"
    assert path.stat().st_mode & 0o777 == 0o600 and short not in path.read_text()
    path.chmod(0o644)
    fresh = run("token", "add", "late", "--scope", "apps:read", "--data", served.data)
    assert fresh.returncode == 1 and "0600" in fresh.err
    path.chmod(0o600)
    # Each entry says what it is for.
    whole = path.read_text()
    tokens = json.loads(whole)
    del tokens["tokens"][0]["kind"]
    path.write_text(json.dumps(tokens))
    listed = run("token", "list", "--data", served.data)
    assert listed.returncode == 1 and "damaged" in listed.err
    path.write_text(whole)
    for arguments, says in [(("none",), "--scope is missing"), (("a b", "--scope", "apps:read"), "expected 1 to 64"),
                            (("x", "--scope", "apps"), "expected one of"),
                            (("short", "--scope", "apps:read"), "there is one of that name"),
                            (("y", "--scope", "apps:read", "--expires", "1"), "a time to come")]:
        done = run("token", "add", *arguments, "--data", served.data)
        assert done.returncode in (1, 2) and says in done.err, arguments
    actions = [json.loads(line) for line in [served.admin("audit", "list", "--json").out]][0]["records"]
    assert [record["action"] for record in actions].count("token.revoke") == 1


def test_what_is_refused(served):
    call, code = served.call, served.code
    assert call("POST", "/api/v1/apps", {"app": "shop"})[0] == 201
    for expected, arguments in [
        ((409, "conflict"), ("POST", "/api/v1/apps", {"app": "shop"})),
        ((400, "invalid"), ("POST", "/api/v1/apps", {"app": "No Such Name"})),
        ((400, "invalid"), ("POST", "/api/v1/apps", {"app": "x", "unknown": 1})),
        ((400, "invalid"), ("POST", "/api/v1/apps", {})),
        ((400, "invalid"), ("POST", "/api/v1/apps", [])),
        ((400, "invalid"), ("POST", "/api/v1/apps", {"app": "--data=/etc"})),
        ((400, "invalid"), ("PATCH", "/api/v1/apps/shop/policy", {"settings": {"nonsense": "1"}})),
        ((400, "invalid"), ("PATCH", "/api/v1/apps/shop/policy", {"settings": {"window": 5}})),
        ((400, "invalid"), ("GET", "/api/v1/apps/shop/accounts?limit=501")),
        ((400, "invalid"), ("GET", "/api/v1/apps/shop/accounts?limit=5&limit=6")),
        ((400, "invalid"), ("GET", "/api/v1/apps/shop/accounts?data=/etc")),
        ((400, "invalid"), ("PUT", "/api/v1/apps/shop/accounts/anna/lock", {"a": 1})),
        ((404, "not-found"), ("GET", "/api/v1/apps/none/policy")),
        ((404, "not-found"), ("GET", "/api/v1/apps/shop/accounts/nobody")),
        ((404, "not-found"), ("GET", "/api/v1/nothing")), ((404, "not-found"), ("GET", "/api/v2/apps")),
        ((404, "not-found"), ("DELETE", "/api/v1/apps/shop/routes?prefix=%2Fnone")),
        ((405, "method"), ("DELETE", "/api/v1/apps")),
    ]:
        assert code(*arguments) == expected, arguments
    assert call("DELETE", "/api/v1/apps")[2]["Allow"] == "GET, POST, HEAD"
    assert code("POST", "/api/v1/apps", raw=b"{") == (400, "invalid")
    assert code("POST", "/api/v1/apps", raw=b'{"app":"a"}', Content_Type="text/plain") == (415, "type")
    assert code("POST", "/api/v1/apps", raw=b'{"app":"' + b"a" * 70_000 + b'"}') == (413, "too-large")
    # A page of another site, whose name was made to lead here.
    assert code("GET", "/api/v1/apps", host="evil.example.com") == (421, "host")
    assert call("GET", "/api/v1/apps", host=f"localhost:{served.admin_port}")[0] == 200
    # No file of the server is read for a caller: a value never becomes an option.
    assert code("POST", "/api/v1/apps/shop/releases", {"platform": "--secret-file=/etc/passwd", "version": "1"}) == \
        (400, "invalid")
    head = call("HEAD", "/api/v1/apps")
    assert head[0] == 200 and head[1] == {} and int(head[2]["Content-Length"]) > 20


def test_a_copy_of_a_call_gets_its_answer(served):
    first = served.call("POST", "/api/v1/apps", {"app": "shop"}, Idempotency_Key="k1")
    again = served.call("POST", "/api/v1/apps", {"app": "shop"}, Idempotency_Key="k1")
    assert (first[0], first[1]) == (again[0], again[1]) == (201, first[1])
    assert "Countersign-Replayed" not in first[2] and again[2]["Countersign-Replayed"] == "true"
    assert served.code("POST", "/api/v1/apps", {"app": "other"}, Idempotency_Key="k1") == (422, "key-reused")
    # Copies that are on the way at once, as after a client's timeout.
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        made = list(pool.map(lambda _: served.call("POST", "/api/v1/apps/shop/releases", {
            "platform": "ios", "version": "1"}, Idempotency_Key="k2")[:2], range(6)))
    assert all(answer == made[0] for answer in made) and made[0][0] == 201
    # Another token's key is another key.
    token = served.token_for("second", ["apps:write"])
    assert served.code("POST", "/api/v1/apps", {"app": "shop"}, token=token, Idempotency_Key="k1") == (409, "conflict")


def test_what_was_changed_meanwhile_is_not_replaced(served):
    served.call("POST", "/api/v1/apps", {"app": "shop"})
    path = "/api/v1/apps/shop/policy"
    tag = served.call("GET", path)[2]["ETag"]
    assert served.call("GET", path)[2]["ETag"] == tag
    served.admin("app", "policy", "shop", "--set", "window=50s")
    change = {"settings": {"window": "40s"}}
    assert served.code("PATCH", path, change, If_Match=tag) == (412, "changed")
    tag = served.call("GET", path)[2]["ETag"]
    assert served.call("PATCH", path, change, If_Match=tag)[0] == 200
    assert served.code("PATCH", path, change, If_Match=tag) == (412, "changed")
    tag = served.call("GET", path)[2]["ETag"]
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        codes = list(pool.map(lambda seconds: served.call("PATCH", path, {"settings": {"window": f"{seconds}s"}},
                                                           If_Match=tag)[0], range(41, 47)))
    assert sorted(codes) == [200] + [412] * 5
    served.admin("app", "policy", "shop", "--set", "window=40s")
    for wrong in ("x", '"x"', "*", f"{tag}, {tag}"):
        assert served.code("PATCH", path, change, If_Match=wrong) == (400, "invalid")
    value = next(row for row in served.call("GET", path)[1]["policy"] if row["key"] == "window")
    assert value["value"] == "40s"
    assert served.code("POST", "/api/v1/apps", {"app": "x"}, If_Match=tag) == (400, "invalid")


def test_the_log_names_each_caller(served, tmp_path):
    served.call("GET", "/api/v1/apps?limit=secret")
    served.call("GET", "/api/v1/apps", token="cst_wrong")
    def lines() -> list[str]:
        return [event["message"] for event in served.events() if event.get("log") == "api"]
    until(lambda: len(lines()) == 2, "the log's thread writes both")
    token = next(one for one in json.loads(served.admin("token", "list", "--json").out)["tokens"] if one["name"] == "all")
    assert lines() == [f"token all ({token['id']}): GET /api/v1/apps: 400", "no valid token: GET /api/v1/apps: 401"]


def test_calls_without_a_token_do_not_fill_the_log(tmp_path):
    with Deployment(tmp_path, "--log-sample", 5, "--log-sample-seconds", 1) as served:
        for _ in range(40):
            assert served.call("GET", "/api/v1/apps", token="cst_wrong")[0] == 401

        def counts() -> tuple[int, int]:
            events = served.events()
            return (sum(event.get("log") == "api" for event in events),
                    sum(event["more"] for event in events if event.get("log") == "sampled" and event["status"] == 401))

        until(lambda: sum(counts()) == 40, "every call is written or counted")
        assert counts()[1] > 0
        # The calls of a token are written all the same.
        for _ in range(10):
            served.call("GET", "/api/v1/apps")
        until(lambda: sum(event.get("log") == "api" and event["message"].startswith("token all") for event in served.events()) == 10,
              "each is written")


def test_a_reload_that_fails_is_a_failure(tmp_path):
    settings = tmp_path / "settings.json"
    settings.write_text("{}")
    with Deployment(tmp_path / "site", "--config", settings) as served:
        assert served.call("POST", "/api/v1/reload")[0] == 200
        settings.write_text('{"limit_head": 1}')
        status, problem, _ = served.call("POST", "/api/v1/reload")
        assert (status, problem["code"]) == (409, "conflict") and "limit_head" in problem["detail"]


def test_commands_of_another_machine(served, tmp_path):
    file = tmp_path / "token"
    file.write_text(served.all + "\n")
    file.chmod(0o600)
    at = ("--api", f"http://127.0.0.1:{served.admin_port}", "--token-file", file)
    made = run(*at, "app", "add", "shop", "--json")
    assert made.returncode == 0 and json.loads(made.out)["app"] == "shop"
    assert run(*at, "app", "list").out == served.admin("app", "list").out
    added = run(*at, "account", "add", "shop", "anna", "--password-stdin", stdin="correct horse battery\n")
    assert added.returncode == 0 and added.out == "added anna\n"
    assert "anna" in run(*at, "account", "list", "shop").out
    failed = run(*at, "account", "show", "shop", "nobody")
    assert failed.returncode == 1 and "has none of that name" in failed.err
    # Usage is judged there as here.
    wrong = run(*at, "route", "set", "shop", "/x", "--require", "nonsense")
    assert wrong.returncode == 2 and "expected open, signed, session or device" in wrong.err
    for words, says in [(("backup", tmp_path / "b"), "not a command that runs over the API"),
                        (("master-key", "rotate"), ""), (("lab",), "not a command that runs over the API"),
                        (("app", "list", "--data", "/etc"), "--data: `countersign app list` does not take this option over the API"),
                        (("release", "add", "shop", "--platform", "ios", "--version", "1", "--secret-file", "/etc/passwd"),
                         "--secret-file: "),
                        (("account", "erase", "shop", "anna"), "over the API expected `--yes`"),
                        (("app", "messages", "shop", "--language", "de"), "over the API expected"),
                        (("app", "messages", "shop", "--language", "de", "--file", "/etc/passwd"), "expected `-` in place of `/etc/passwd`"),
                        (("pins", "publish", "/etc/passwd", "--public-key", "x"), "expected `-` in place of `/etc/passwd`")]:
        done = run(*at, *words)
        assert done.returncode == 2 and says in done.err, (words, done.err)
    reader = tmp_path / "reader"
    reader.write_text(served.token_for("reader", ["apps:read", "audit:read"]))
    reader.chmod(0o600)
    limited = ("--api", f"http://127.0.0.1:{served.admin_port}", "--token-file", reader)
    assert run(*limited, "app", "policy", "shop").returncode == 0
    refused = run(*limited, "app", "policy", "shop", "--set", "window=9s")
    assert refused.returncode == 1 and "apps:write" in refused.err
    # A token that may only write does not read, and `--help` of another client runs nothing.
    writer = served.token_for("writer", ["apps:write"])
    for arguments, status in [(["shop"], 403), (["--help", "--set", "window=9s", "shop"], 400), (["--set", "window=9s", "shop"], 200)]:
        assert served.call("POST", "/api/v1/commands", {"words": ["app", "policy"], "arguments": arguments},
                           token=writer)[0] == status, arguments
    actors = {record["actor"]["kind"] for record in served.audit() if record["action"] == "account.add"}
    assert actors == {"token"}
    # A token is sent to this machine, or over TLS; and its file is one's own.
    assert "https" in run("--api", "http://192.0.2.1:1", "--token-file", file, "app", "list").err
    file.chmod(0o644)
    assert "0600" in run(*at, "app", "list").err


def test_texts_of_refusals(served, tmp_path):
    served.call("POST", "/api/v1/apps", {"app": "shop"})
    path = "/api/v1/apps/shop/messages"
    assert served.call("GET", path)[1] == {"app": "shop", "messages": []}
    status, changed, _ = served.call("PUT", path, {"language": "de", "texts": {"session-ended": "Bitte neu anmelden <b>."}})
    assert (status, changed["texts"]) == (200, 1)
    listed = served.call("GET", path)[1]["messages"]
    assert listed == [{"release": None, "language": "de", "texts": {"session-ended": "Bitte neu anmelden <b>."}}]
    for body in ({"language": "de"}, {"language": "de", "texts": []}, {"language": "de", "texts": "/etc/passwd"}, {"language": "de", "texts": {"x": 1}}):
        assert served.code("PUT", path, body) == (400, "invalid"), body
    file = tmp_path / "token"
    file.write_text(served.all)
    file.chmod(0o600)
    at = ("--api", f"http://127.0.0.1:{served.admin_port}", "--token-file", file)
    done = run(*at, "app", "messages", "shop", "--language", "fr", "--file", "-", stdin='{"session-ended": "Reconnectez-vous."}')
    assert done.returncode == 0, done.err
    assert "Reconnectez-vous." in run(*at, "app", "messages", "shop").out
    assert served.call("DELETE", f"{path}?language=de")[0] == 200
    assert [entry["language"] for entry in served.call("GET", path)[1]["messages"]] == ["fr"]


def test_pin_manifests(served, tmp_path):
    """A caller of the API publishes newer manifests, and cannot replace the key, by which an old one could be put back."""
    served.call("POST", "/api/v1/apps", {"app": "shop"})
    keys, signed = {}, {}
    for name in ("own", "attacker"):
        keys[name] = json.loads(run("pins", "keygen", tmp_path / name, "--json").out)["public_key"]
    now = int(time.time())
    for name, version, end in (("own", 1, 9_000), ("own", 2, 9_000), ("own", 3, 9_000), ("attacker", 1, 9_000), ("own", 4, -5)):
        text = json.dumps({"app": "shop", "version": version, "not_before": now - 100, "not_after": now + end, "hosts": [
            {"pattern": "**.example.com", "pins": [f"sha256/{base64.b64encode(bytes(32)).decode()}"], "backups": [f"sha256/{base64.b64encode(bytes([1]) * 32).decode()}"]}]})
        (tmp_path / "manifest").write_text(text)
        signed[name, version] = json.loads(run("pins", "sign", tmp_path / "manifest", "--key", tmp_path / name).out)

    def publish(name: str, version: int) -> tuple[int, str]:
        return served.code("POST", "/api/v1/pins", {"manifest": signed[name, version], "public_key": keys[name]})

    assert served.call("GET", "/api/v1/pins")[1] == {"manifests": []}
    assert publish("own", 2) == (201, "")
    assert publish("own", 1) == (409, "conflict") and publish("own", 2) == (409, "conflict"), "only a newer one"
    assert publish("own", 4) == (409, "conflict"), "it has expired"
    status, problem, _ = served.call("POST", "/api/v1/pins", {"manifest": signed["attacker", 1], "public_key": keys["attacker"]})
    assert status == 409 and "another key" in problem["detail"]
    changed = signed["own", 3] | {"signature": signed["own", 2]["signature"]}
    assert served.code("POST", "/api/v1/pins", {"manifest": changed, "public_key": keys["own"]}) == (409, "conflict")
    assert publish("own", 3) == (201, "")
    shown = served.call("GET", "/api/v1/pins")[1]["manifests"]
    assert [(entry["app"], entry["version"]) for entry in shown] == [("shop", 3)]
    # On the server's machine a person replaces it.
    (tmp_path / "signed").write_text(json.dumps(signed["attacker", 1]))
    served.admin("pins", "publish", tmp_path / "signed", "--public-key", keys["attacker"])
    assert "shop" in served.admin("pins", "list").out


def test_a_tokens_calls_leave_room_for_others(served):
    """A program whose own callers are many does not keep the operators out."""
    busy, operator = served.token_for("busy", ["audit:read"]), served.token_for("operator", ["apps:read"])

    def call(_: int) -> int:
        return served.call("GET", "/api/v1/audit/verification", token=busy)[0]

    with concurrent.futures.ThreadPoolExecutor(40) as pool:
        calls = [pool.submit(call, number) for number in range(200)]
        until(lambda: any(call.running() for call in calls), "calls")
        own = [served.call("GET", "/api/v1/apps", token=operator)[0] for _ in range(10)]
        statuses = [each.result() for each in calls]
    assert own == [200] * 10
    assert set(statuses) == {200, 503}, "it had as many as it may have"


class Following:
    """`audit list --follow`, whose lines a thread reads."""

    def __init__(self, *arguments: object):
        self.process = processes.start([BINARY, *map(str, arguments), "--follow"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.lines: list[str] = []
        self.reader = threading.Thread(target=lambda: self.lines.extend(self.process.stdout))
        self.reader.start()

    def sees(self, text: str) -> None:
        until(lambda: any(text in line for line in self.lines), lambda: f"{text} in {self.lines}")

    def __enter__(self) -> "Following":
        return self

    def __exit__(self, *_: object) -> None:
        # Not SIGINT: whoever runs the tests in the background may have it ignored.
        self.process.terminate()
        self.process.wait(60)
        self.reader.join()
        self.process.stderr.close()
        self.process.stdout.close()


def test_the_log_is_followed_here_and_from_elsewhere(served, tmp_path):
    file = tmp_path / "token"
    file.write_text(served.token_for("follower", ["audit:read"]))
    file.chmod(0o600)
    at = ("--api", f"http://127.0.0.1:{served.admin_port}", "--token-file", file)
    with Following(*at, "audit", "list", "--json") as remote, \
            Following("audit", "list", "--last", "1", "--data", served.data) as local:
        remote.sees('"token.add"')
        local.sees("WHO")
        # The server has no thread for each of them: other calls are answered as ever.
        assert served.call("POST", "/api/v1/apps", {"app": "followed", "require": "signed"})[0] == 201
        remote.sees('"followed"')
        local.sees("followed")
        records = [json.loads(line) for line in remote.lines]
        assert [one["number"] for one in records] == list(range(records[0]["number"], records[-1]["number"] + 1))
        assert records[-1]["action"] == "app.add"
        assert sum("NUMBER" in line for line in local.lines) == 1, local.lines
    assert remote.process.returncode == local.process.returncode == -signal.SIGTERM


def four_that_wait(pool: concurrent.futures.Executor, call) -> tuple[list[concurrent.futures.Future], tuple]:
    """Four calls that wait, and the response of a fifth: it is the first that ends, since four are waiting."""
    calls = [pool.submit(call) for _ in range(5)]
    ended, waiting = concurrent.futures.wait(calls, HANGS, concurrent.futures.FIRST_COMPLETED)
    assert len(ended) == 1, "none is refused"
    return list(waiting), ended.pop().result()


def test_calls_that_wait_are_few_and_end(served):
    last = served.call("GET", "/api/v1/audit")[1]["records"][-1]["number"]
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        began = served.time()
        waiting = pool.submit(served.call, "GET", f"/api/v1/audit?after={last}&wait=20")
        until(lambda: served.clock.advance(0.5) or waiting.done(), "the end of the wait")
        assert waiting.result()[:2] == (200, {"records": []}) and served.time() - began > 18
    assert served.code("GET", f"/api/v1/audit?after={last}&wait=31") == (400, "invalid")
    # What is there already is not waited for: a wait would end with the client's patience.
    assert served.call("GET", f"/api/v1/audit?after={last - 1}&wait=30")[1]["records"]
    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        waiting, refused = four_that_wait(pool, lambda: served.call("GET", f"/api/v1/audit?after={last}&wait=30"))
        status, problem, _ = refused
        assert (status, problem["code"]) == (503, "unavailable") and "at most 4" in problem["detail"]
        # Another token has places of its own, and the same token may do other things.
        other = served.token_for("other", ["audit:read"])
        begins = served.call("GET", f"/api/v1/audit?after={last}&wait=30", token=other)
        assert begins[0] == 200 and [one["action"] for one in begins[1]["records"]] == ["token.add"]
        assert all(one.result()[1]["records"] for one in waiting), "the new token's record ends their wait"
    assert served.call("GET", f"/api/v1/audit?after={last + 1}&wait=1")[0] == 200, "their places are free again"


def test_a_server_that_ends_waits_for_no_record(tmp_path):
    with Deployment(tmp_path) as gateway, concurrent.futures.ThreadPoolExecutor(5) as pool:
        waiting, _ = four_that_wait(pool, lambda: gateway.call("GET", "/api/v1/audit?after=1000&wait=30"))
        gateway.process.terminate()
        # Ended by the server: a wait that ran out would have a response.
        assert all(isinstance(one.exception(HANGS), http.client.RemoteDisconnected) for one in waiting)
        assert gateway.process.wait(HANGS) == 0


def test_over_postgresql(server, tmp_path):
    address = server.create("adminapi")
    with Deployment(tmp_path / "site", "--replay", "postgres", environment={"COUNTERSIGN_STORE": address}) as served:
        assert served.call("POST", "/api/v1/apps", {"app": "shop"})[0] == 201
        assert served.call("POST", "/api/v1/apps/shop/accounts", {"account": "anna"})[0] == 201
        assert served.call("PUT", "/api/v1/apps/shop/accounts/anna/lock")[1]["state"] == "locked"
        assert len(served.call("GET", "/api/v1/nodes")[1]["nodes"]) == 1
        assert served.call("GET", "/api/v1/audit/verification")[1]["findings"] == []
        assert "token" in {record["actor"]["kind"] for record in served.audit()}


def explored(document: pathlib.Path, url: str, checks: str, *options: str) -> None:
    """Has schemathesis make requests of each operation, valid and not, and compare the answers with the document."""
    done = subprocess.run(
        [pathlib.Path(sys.executable).with_name("schemathesis"), "run", document, "--url", url, "--checks", checks,
         "--phases", "coverage,fuzzing", "--max-examples", os.environ.get("COUNTERSIGN_SCHEMATHESIS", "3"),
         "--continue-on-failure", "--request-timeout", "10", "--suppress-health-check", "all",
         "--generation-database", "none", "--no-color", "--warnings", "off", *options],
        cwd=document.parent, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-1000:]
    made = re.search(r"([0-9]+) generated", done.stdout)
    assert made and int(made[1]) > 50, done.stdout[-1500:]


CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


def test_the_document_describes_every_answer(served, tmp_path):
    served.call("POST", "/api/v1/apps", {"app": "shop"})
    served.call("POST", "/api/v1/apps/shop/accounts", {"account": "anna"})
    document = tmp_path / "openapi.json"
    document.write_text(run("openapi").out)
    assert json.loads(document.read_text()) == served.call("GET", "/api/openapi.json", token="")[1]
    assert run("openapi", "nothing").returncode == 2
    explored(document, f"http://127.0.0.1:{served.admin_port}/api/v1", f"{CHECKS},negative_data_rejection",
             "--exclude-operation-id", "reload",
             # Half a minute for each case that waits; the tests above compare its answers with the document.
             "--exclude-operation-id", "listAudit", "--header", f"Authorization: Bearer {served.all}")
    assert served.call("GET", "/api/v1/version")[0] == 200


def test_the_authoritys_routes_are_those_of_its_document(tmp_path):
    with Deployment(tmp_path / "site", "--tls", "off") as served:
        served.add_app("demo")
        answer = served.send(b"GET /countersign/v1/openapi.json HTTP/1.1\r\nHost: localhost:%d\r\n\r\n" % served.port)
        assert answer.status == 200 and json.loads(answer.body) == json.loads(run("openapi", "authority").out)
        for path, item in json.loads(answer.body)["paths"].items():
            target = path.replace("{app}", "demo").replace("{session}", "A" * 22)
            for method, operation in item.items():
                found = served.send(f"{method.upper()} /countersign/v1{target} HTTP/1.1\r\nHost: localhost:{served.port}\r\n"
                                    "Content-Length: 0\r\n\r\n".encode())
                if operation["security"]:
                    assert (found.status, json.loads(found.body)["code"]) == (401, "unsigned"), (method, path)
                else:
                    assert found.status == (404 if path.startswith("/pins") else 200), (method, path)
        document = tmp_path / "authority.json"
        document.write_bytes(answer.body)
        explored(document, f"{served.url}/countersign/v1", CHECKS)


def test_a_call_reads_few_pages_of_the_store(tmp_path):
    """The pages were checked when the server started; a check in each call would read the whole file each time."""
    with Deployment(tmp_path) as deployment:
        deployment.add_app("demo")
        path = deployment.data / "countersign.db"
        database = sqlite3.connect(path, isolation_level=None)
        database.execute("WITH RECURSIVE many(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM many WHERE n < 8000) "
                         "INSERT INTO webhook_delivery (endpoint, event, account, created, due, attempts, given_up, body) "
                         "SELECT 'w_1', 'evt_1', 0, unixepoch(), 0, 0, unixepoch(), zeroblob(4000) FROM many")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.close()
        size = path.stat().st_size
        assert size > 30_000_000
        assert deployment.call("GET", "/api/v1/apps")[0] == 200
        before = bytes_read(deployment)
        for _ in range(20):
            assert deployment.call("GET", "/api/v1/apps")[0] == 200
        assert bytes_read(deployment) - before < size


def test_a_policy_names_no_file_of_the_server_over_the_api(served):
    """The answer must not tell whether a file is there, and a pipe must not hold the thread that runs commands."""
    served.add_app("demo")
    folder = served.data / "policy-files"
    folder.mkdir(mode=0o700)
    pipe, known = folder / "pipe", folder / "list"
    os.mkfifo(pipe, 0o600)
    known.write_text("A" * 40 + "\n")
    answers = []
    for path in (pipe, known, "/etc/passwd", "/nowhere"):
        status, answer, _ = served.call("PATCH", "/api/v1/apps/demo/policy", {"settings": {"breached-passwords": str(path)}})
        assert status == 400 and str(path) not in answer["detail"], answer
        answers.append(answer["detail"])
    assert len(set(answers)) == 1 and "cannot be set over the API" in answers[0]
    done = run("app", "policy", "demo", "--set", f"breached-passwords={pipe}", "--data", served.data)
    assert done.returncode == 1 and "is not a regular file" in done.err
    served.admin("app", "policy", "demo", "--set", f"breached-passwords={known}")
    done = run("app", "policy", "demo", "--set", "breached-passwords=/etc/passwd", "--data", served.data)
    assert done.returncode == 1 and "is not below" in done.err


def is_open(sock: socket.socket) -> bool:
    """Whether the server has not closed the connection."""
    sock.setblocking(False)
    try:
        return sock.recv(1) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


@pytest.fixture
def patient(tmp_path):
    """A server that closes no connection because of its age."""
    ages = [option for name in ("head", "idle", "idle-unproven", "connection") for option in (f"--deadline-{name}", 3_600)]
    with Deployment(tmp_path, *ages) as deployment:
        yield deployment


def test_idle_connections_of_one_address_lock_nobody_out(patient):
    """The operator, Prometheus and a stranger all come from this machine's address. Who proves a token keeps the connection."""
    operator = http.client.HTTPConnection("127.0.0.1", patient.admin_port, timeout=HANGS)
    headers = {"Authorization": f"Bearer {patient.all}"}

    def asks() -> int:
        operator.request("GET", "/api/v1/apps", headers=headers)
        answer = operator.getresponse()
        answer.read()
        return answer.status

    assert asks() == 200
    kept = operator.sock
    idle = [socket.create_connection(("127.0.0.1", patient.admin_port)) for _ in range(100)]
    for path, status in (("/health", 200), ("/ready", 200), ("/metrics", 401), ("/api/v1/apps", 401), ("/console", 303)):
        other = http.client.HTTPConnection("127.0.0.1", patient.admin_port, timeout=HANGS)
        other.request("GET", path)
        assert other.getresponse().status == status, path
        other.close()
    assert patient.call("GET", "/api/v1/apps")[0] == 200
    assert patient.metrics()
    # The connection with proof was there before all of them, and is there still.
    assert asks() == 200 and operator.sock is kept
    # One address holds no more than half.
    until(lambda: sum(map(is_open, idle)) <= 32, "the oldest gave way")
    for each in idle:
        each.close()
    operator.close()
