"""Admin commands work with and without a server, and a running one sees each change at once."""

import json
import stat
import time

from gateway import Gateway, run


def code(answer) -> str | None:
    return json.loads(answer.body).get("code") if answer.status != 200 else None


def test_changes_are_seen_at_once(tmp_path):
    with Gateway(tmp_path) as running:
        running.add_app("demo")
        first = running.add_release("demo", "ios", "1.0")
        assert code(running.send(first.request())) is None
        second = running.add_release("demo", "ios", "1.1")
        assert code(running.send(second.request())) is None

        running.admin("app", "policy", "demo", "--set", "schemes=form-md5")
        assert code(running.send(first.request())) == "scheme-not-allowed"
        running.admin("app", "policy", "demo", "--set", "schemes=message-signatures")
        assert code(running.send(first.request())) is None

        running.admin("app", "policy", "demo", "--set", "window=2s")
        assert code(running.send(first.request(created=int(time.time()) - 8))) == "stale"
        running.admin("app", "policy", "demo", "--set", "window=60s")
        assert code(running.send(first.request(created=int(time.time()) - 8))) is None

        running.admin("release", "retire", first.key_id, "--at", str(int(time.time()) - 1),
                      "--update-url", "https://example.com/update")
        answer = running.send(first.request())
        assert (answer.status, code(answer)) == (426, "update-required")
        assert code(running.send(second.request())) is None


def test_changes_without_a_server_are_kept(tmp_path):
    gateway = Gateway(tmp_path)
    gateway.add_app("demo")
    key = gateway.add_release("demo", "android", "3.2")
    with gateway:
        key.authority = f"127.0.0.1:{gateway.port}"
        assert gateway.send(key.request()).status == 200
    with gateway:
        assert gateway.send(key.request()).status == 200
    apps = json.loads(gateway.admin("app", "list", "--json").out)
    assert "demo" in json.dumps(apps)
    releases = gateway.admin("release", "list", "demo", "--json").out
    assert key.key_id in releases and "3.2" in releases


def test_a_secret_is_printed_once_and_kept_sealed(tmp_path):
    gateway = Gateway(tmp_path)
    gateway.add_app("demo")
    key = gateway.add_release("demo")
    imported = "an-imported-secret-9f31c2"
    gateway.admin("release", "add", "demo", "--platform", "ios", "--version", "0.9", "--scheme", "form-md5",
                  "--key-id", "imported-app", "--secret", imported)
    for command in (("release", "list", "demo"), ("release", "list", "demo", "--json"), ("app", "list", "--json"),
                    ("app", "policy", "demo")):
        text = gateway.admin(*command).out
        assert key.secret not in text and imported not in text
    for path in gateway.data.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert key.secret.encode() not in content and imported.encode() not in content, path
    with gateway:
        assert stat.S_IMODE(gateway.data.stat().st_mode) & 0o077 == 0
        private = [path for path in gateway.data.rglob("*") if path.is_file() and path.name != "certificate.pem"]
        assert len(private) >= 3
        assert not [path for path in private if stat.S_IMODE(path.stat().st_mode) & 0o077]


def test_what_is_there_already_and_what_is_not(tmp_path):
    """Each is one clear error that names the thing, exit 1 or 2, and nothing is changed."""
    gateway = Gateway(tmp_path)
    gateway.add_app("demo")
    gateway.add_release("demo", "ios", "1.0")
    before = gateway.admin("release", "list", "demo", "--json").out
    for arguments, named in [
        (("app", "add", "demo"), "demo"),
        (("app", "add", "no spaces or ünïcode"), "no spaces"),
        (("app", "policy", "absent"), "absent"),
        (("app", "policy", "demo", "--set", "nonsense=1"), "nonsense"),
        (("app", "policy", "demo", "--set", "window=soon"), "soon"),
        (("app", "policy", "demo", "--set", "schemes=rot13"), "rot13"),
        (("release", "add", "absent", "--platform", "ios", "--version", "1.0"), "absent"),
        (("release", "add", "demo", "--platform", "ios"), "--version"),
        (("release", "add", "demo", "--platform", "ios", "--version", "2", "--scheme", "rot13"), "rot13"),
        (("release", "list", "absent"), "absent"),
    ]:
        done = run(*arguments, "--data", gateway.data)
        assert done.returncode in (1, 2), (arguments, done.out)
        assert named in done.err, (arguments, done.err)
        assert len(done.err.strip().splitlines()) <= 3, done.err
    assert gateway.admin("release", "list", "demo", "--json").out == before
