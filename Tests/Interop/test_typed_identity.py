"""The account that a backend is told begins with its type: PHP, Node and SQLite read no name that a person
chose as the number of a user."""

import base64
import json
import subprocess
import urllib.parse

import pytest

from backend import Backend
from gateway import Gateway, run

HOST = "shop.example"
# Each is user 42, or a number at all, to a cast of some language.
NAMES = ["42", "42e0", "42a", "0x2a", "042", "+42", "1e1", "42.0", "4_2", "0b101010", "0o52", "٤٢", "４２", "nan", "infinity",
         "42;", "42,", "id:42", "name:42", "42 43", "42%00", "true", ".42e2"]
PHP = """
foreach (json_decode(stream_get_contents(STDIN), true) as $value) {
    $casts = [(int) $value, intval($value, 0), (float) $value, $value == 42, $value == '42', $value == 42.0,
        is_numeric($value), filter_var($value, FILTER_VALIDATE_INT), in_array($value, [42]),
        match (true) { $value == 42 => true, default => false }];
    foreach ($casts as $cast) if ($cast == true) { echo json_encode($value), "\\n"; break; }
}
"""
NODE = """
for (const value of JSON.parse(require('fs').readFileSync(0, 'utf8'))) {
  const casts = [parseInt(value), parseInt(value, 10), parseFloat(value), Number(value), +value, value | 0, value == 42, value >= 42]
  let big = false
  try { big = BigInt(value) } catch { }
  if ([...casts, big].some((cast) => cast)) console.log(JSON.stringify(value))
}
"""


def php(values: list[str]) -> list[str]:
    done = subprocess.run(["php", "-r", PHP], input=json.dumps(values), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def node(values: list[str]) -> list[str]:
    done = subprocess.run(["node", "-e", NODE], input=json.dumps(values), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def sqlite(values: list[str]) -> list[str]:
    """In the shell, as a backend in PHP or Node has it: casts, arithmetic, and comparison with a column of each affinity."""
    lines = ["CREATE TABLE account (id INTEGER PRIMARY KEY);", "INSERT INTO account VALUES (42), (10);",
             "CREATE TABLE real (id REAL);", "INSERT INTO real VALUES (42), (10);", "CREATE TABLE numeric_id (id NUMERIC);",
             "INSERT INTO numeric_id VALUES (42), (10);"]
    for index, value in enumerate(values):
        text = "'" + value.replace("'", "''") + "'"
        tests = [f"CAST({text} AS INTEGER)", f"CAST({text} AS REAL)", f"CAST({text} AS NUMERIC)", f"{text} + 0",
                 *(f"EXISTS (SELECT 1 FROM {table} WHERE id = {text})" for table in ("account", "real", "numeric_id"))]
        lines.append(f"SELECT {index} WHERE " + " OR ".join(tests) + ";")
    done = subprocess.run(["sqlite3", ":memory:"], input="\n".join(lines), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return [values[int(line)] for line in done.stdout.splitlines()]


CASTS = [php, node, sqlite]


def answer(seen, sock) -> None:
    sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


class Shop:
    """A gateway with accounts of these names, which their clients sign in to by the ladder, and its backend."""

    def __init__(self, gateway: Gateway, backend: Backend):
        self.gateway, self.backend = gateway, backend

    def post(self, path: str, *fields: str, **form: str):
        body = urllib.parse.urlencode(form)
        head = [f"POST {path} HTTP/1.1", f"Host: {HOST}", "Content-Type: application/x-www-form-urlencoded",
                f"Content-Length: {len(body)}", *fields]
        return self.gateway.send("\r\n".join([*head, "", body]).encode())

    def log_in(self, name: str) -> dict:
        return json.loads(self.post("/login/login.php", username=name, password="pw-secret").body)

    def seen(self, token: str, *fields: str) -> dict[str, list[str]]:
        assert self.post("/me", f"Authorization: Bearer {token}", *fields, a="1").status == 200
        found: dict[str, list[str]] = {}
        for name, value in self.backend.seen[-1].fields:
            found.setdefault(name, []).append(value)
        return found


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    folder = tmp_path_factory.mktemp("typed")
    with Backend(answer) as backend, \
            Gateway(folder, "--tls", "off", "--upstream", backend.url, "--login-address", "100000/1s", "--authority", HOST) as gateway:
        gateway.add_app("shop", legacy_login="on", legacy_session="authority", legacy_host=HOST, schemes="token", slots="unlimited",
                        assertion="on", registration="open", legacy_rung="plain-post", legacy_paths="signup:/user/register")
        for name in NAMES:
            gateway.admin("account", "add", "shop", name, "--legacy", "plain-post", "--password-stdin", stdin="pw-secret")
        gateway.admin("account", "add", "shop", "real", "--legacy", "plain-post", "--password-stdin", "--user-id", "42", stdin="pw-secret")
        yield Shop(gateway, backend)


def subject(assertion: str) -> str:
    payload = assertion.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["sub"]


def test_no_cast_reads_a_name_as_a_number(shop):
    told = {}
    for name in NAMES:
        said = shop.log_in(name)
        assert said["userId"] > 2_000_000_000, "no number that a backend gives"
        seen = shop.seen(said["token"], "Countersign-User-Id: 42", "Countersign_User_Id: 42")
        assert "countersign-user-id" not in seen, "only the backend gives ids"
        (told[name],) = seen["countersign-account"]
        assert subject(seen["countersign-assertion"][0]) == told[name]
    assert len(set(told.values())) == len(NAMES) and all(value.startswith("name:") for value in told.values())
    assert all(0x20 < ord(character) < 0x7F for value in told.values() for character in value)
    for cast in CASTS:
        assert cast(list(told.values())) == [], cast.__name__
        # The cast must find what was wrong before: the names themselves.
        assert set(cast(NAMES)) >= {"42", "42e0", "042", "+42"}, cast.__name__


def test_the_backends_own_id_comes_twice(shop):
    said = shop.log_in("real")
    assert said["userId"] == 42
    seen = shop.seen(said["token"], "Countersign-User-Id: 7", "Countersign-Account: id:7")
    assert seen["countersign-account"] == ["id:42"] and seen["countersign-user-id"] == ["42"]
    assert subject(seen["countersign-assertion"][0]) == "id:42"
    for cast in CASTS:
        assert cast(["id:42"]) == [], cast.__name__


def test_nobody_states_another_user(shop):
    name, number = "42e0", shop.log_in("42e0")["userId"]
    token = shop.log_in(name)["token"]
    states = lambda user: shop.post("/me", f"Authorization: Bearer {token}", userId=user).status  # noqa: E731
    assert states(str(number)) == 200
    assert {user: states(user) for user in ("42", "42e0", "name:42e0", "id:42", str(number + 1))} == dict.fromkeys(
        ("42", "42e0", "name:42e0", "id:42", str(number + 1)), 401)


def test_a_sign_up_invents_no_id(shop):
    made = json.loads(shop.post("/user/register", username="43e0", password="pw-secret").body)
    assert made["userId"] > 2_000_000_000
    seen = shop.seen(made["token"])
    assert seen["countersign-account"] == ["name:43e0"] and "countersign-user-id" not in seen
    (account,) = [each for each in json.loads(shop.gateway.admin("account", "list", "shop", "--json").out)["accounts"]
                  if each["account"] == "43e0"]
    assert account["user_id"] is None


def test_an_id_is_set_and_cleared(shop):
    def set_id(value: str):
        return json.loads(shop.gateway.admin("account", "user-id", "shop", "0x2a", value, "--json").out)

    token = shop.log_in("0x2a")["token"]
    assert len(set_id("44")["ended_sessions"]) >= 1 and set_id("44")["ended_sessions"] == []
    assert shop.post("/me", f"Authorization: Bearer {token}", a="1").status == 401, "its clients were told another number"
    said = shop.log_in("0x2a")
    assert said["userId"] == 44 and shop.seen(said["token"])["countersign-user-id"] == ["44"]
    assert set_id("none")["user_id"] is None
    assert shop.seen(shop.log_in("0x2a")["token"])["countersign-account"] == ["name:0x2a"]
    for value, status in (("42", 1), ("2000000001", 1), ("0", 2), ("42e0", 2), ("-1", 2)):
        done = run("account", "user-id", "shop", "0x2a", value, "--data", shop.gateway.data)
        assert done.returncode == status, (value, done.err)
    actions = [record["action"] for record in json.loads(shop.gateway.admin("audit", "list", "--json").out)["records"]]
    assert actions.count("account.user-id") == 2
