"""Two keys under one id: both verify until one is dropped, and a running server sees each step at once."""

import json
import threading
from dataclasses import replace

from gateway import Gateway, run
from signing import ReleaseKey


def rotated(gateway: Gateway, key: ReleaseKey, *options: object) -> ReleaseKey:
    made = json.loads(gateway.admin("release", "rotate", key.key_id, *options, "--json").out)
    assert made["key_id"] == key.key_id and made["next_key"] is True
    return replace(key, secret=made["secret"])


def code(answer) -> str:
    return "accepted" if answer.status == 200 else json.loads(answer.body)["code"]


def figures(gateway: Gateway) -> dict:
    return json.loads(gateway.admin("meter", "demo", "--json").out)["releases"][0]


def test_promote_and_cancel(tmp_path):
    with Gateway(tmp_path) as running:
        running.add_app("demo")
        old = running.add_release()
        dropped = rotated(running, old)
        assert dropped.secret != old.secret
        assert [code(running.send(key.request())) for key in (old, dropped)] == ["accepted", "accepted"]
        running.admin("release", "rotate", old.key_id, "--cancel")
        assert [code(running.send(key.request())) for key in (old, dropped)] == ["accepted", "bad-signature"]
        new = rotated(running, old)
        listed = json.loads(running.admin("release", "list", "demo", "--json").out)["releases"][0]
        assert listed["next_key"] is True and new.secret not in json.dumps(listed)
        running.admin("release", "rotate", old.key_id, "--promote")
        assert [code(running.send(key.request())) for key in (old, new)] == ["bad-signature", "accepted"]
        assert json.loads(running.admin("release", "list", "demo", "--json").out)["releases"][0]["next_key"] is False
        running.stop()
        running.start()
        assert [code(running.send(key.request())) for key in (old, new)] == ["bad-signature", "accepted"]


def test_what_cannot_be(tmp_path):
    gateway = Gateway(tmp_path)
    gateway.add_app("demo")
    key = gateway.add_release()
    rotate = ("release", "rotate", key.key_id)
    for arguments, status, named in [
        ((*rotate, "--promote"), 1, "no next key"), ((*rotate, "--cancel"), 1, "no next key"),
        ((*rotate, "--secret", f"base64url:{key.secret}"), 1, "already"),
    ]:
        done = run(*arguments, "--data", gateway.data)
        assert (done.returncode, named in done.err) == (status, True), (arguments, done.err)
    rotated(gateway, key)
    done = run(*rotate, "--data", gateway.data)
    assert done.returncode == 1 and "--promote" in done.err and done.out == ""


def test_a_key_that_is_brought_along(tmp_path):
    with Gateway(tmp_path) as running:
        running.add_app("demo")
        old = running.add_release()
        secret = "0123456789abcdef0123456789abcdef0123456789A"
        running.admin("release", "rotate", old.key_id, "--secret-stdin", stdin=f"base64url:{secret}\n")
        assert code(running.send(replace(old, secret=secret).request())) == "accepted"
        for path in running.data.rglob("*"):
            assert not path.is_file() or secret.encode() not in path.read_bytes(), path


def test_a_secret_gives_way_to_a_key_pair(tmp_path):
    """The next key may be the public half of a pair; from then on the old secret says nothing."""
    with Gateway(tmp_path) as running:
        running.add_app("demo")
        old = running.add_release()
        made = json.loads(running.admin("release", "rotate", old.key_id, "--algorithm", "ed25519", "--json").out)
        assert "secret" not in made and made["private_key"].startswith("-----BEGIN ")
        pem = tmp_path / "private.pem"
        pem.write_text(made["private_key"])

        def signed() -> bytes:
            request = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{running.port}\r\n\r\n"
            done = run("sign", "--key-id", old.key_id, "--secret-file", pem, stdin=request)
            assert done.returncode == 0, done.err
            return done.stdout

        assert [code(running.send(data)) for data in (old.request(), signed())] == ["accepted", "accepted"]
        running.admin("release", "rotate", old.key_id, "--promote")
        assert [code(running.send(data)) for data in (old.request(), signed())] == ["bad-signature", "accepted"]
        done = run("release", "rotate", old.key_id, "--data", running.data)
        assert done.returncode == 2 and "key pair" in done.err


class Load:
    """A thread that signs with one key until it is told to stop, and notes each answer."""

    def __init__(self, gateway: Gateway, key: ReleaseKey):
        self.gateway, self.key, self.codes = gateway, key, []
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self) -> None:
        try:
            with self.gateway.connect() as connection:
                while not self.stopping.is_set():
                    connection.send(self.key.request())
                    self.codes.append(code(connection.answer()))
        except Exception as error:
            self.codes.append(error)

    def wait(self, count: int) -> None:
        seen = len(self.codes)
        while self.thread.is_alive() and len(self.codes) < seen + count:
            self.stopping.wait(0.01)  # lint: the pace of a load

    def stop(self) -> list[str]:
        self.stopping.set()
        self.thread.join(20)
        assert not self.thread.is_alive()
        return self.codes


def test_under_load_nothing_is_refused_before_and_everything_after(tmp_path, note):
    with Gateway(tmp_path) as running:
        running.add_app("demo")
        old = running.add_release()
        first = Load(running, old)
        first.wait(60)
        new = rotated(running, old)
        second = Load(running, new)
        second.wait(60)
        first.wait(60)
        before = first.codes + second.codes
        assert set(before) == {"accepted"}, "a key was refused while both were valid"
        running.admin("release", "rotate", old.key_id, "--promote")
        # What was sent from here on was judged by the new key alone.
        assert code(running.send(old.request())) == "bad-signature"
        assert code(running.send(new.request())) == "accepted"
        first.wait(60)
        second.wait(60)
        olds, news = first.stop(), second.stop()
        assert set(news) == {"accepted"}
        assert set(olds[-19:]) == {"bad-signature"}, "the old key lives on"
        turn = olds.index("bad-signature")
        assert set(olds[:turn]) == {"accepted"} and set(olds[turn:]) == {"bad-signature"}, "it wavered"
        running.stop()
        counted = figures(running)
        total = olds.count("accepted") + news.count("accepted") + 1
        assert counted["accepted"] == total
        # Until promotion the new key was the next one; after it, the current one.
        assert 50 <= counted["accepted_next_key"] <= len(news)
        assert counted["refused_by_code"] == {"bad-signature": olds.count("bad-signature") + 1}
        note(f"a key replaced under load: {turn} and {len(news)} requests accepted under the old and the new key, "
             f"none refused before the promotion; after it, none of the old key's {len(olds) - turn} accepted")
