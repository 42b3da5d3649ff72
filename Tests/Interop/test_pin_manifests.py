"""Pin manifests, from the offline key to the client that asks: another implementation verifies what is signed and served."""

import base64
import json
import time

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from gateway import Gateway, run

PINS = ["sha256/" + letter * 43 + "=" for letter in "AEI"]
CONTEXT = b"countersign pin manifest 1\n"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with Gateway(tmp_path_factory.mktemp("pins")) as running:
        for app in ("demo", "other", "raced"):
            running.add_app(app)
        yield running


def decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class Offline:
    """Where the key is: a folder that the server never sees."""

    def __init__(self, folder):
        self.folder, self.key = folder, folder / "key.pem"
        folder.mkdir()
        self.public = json.loads(run("pins", "keygen", self.key, "--json").out)["public_key"]

    def manifest(self, version: int, app: str = "demo", **others) -> dict:
        now = int(time.time())
        return {"app": app, "version": version, "not_before": now - 60, "not_after": now + 3600,
                "hosts": [{"pattern": "**.example.com", "pins": PINS[:1], "backups": PINS[1:]}], **others}

    def sign(self, manifest: dict, name: str = "manifest"):
        (self.folder / f"{name}.json").write_text(json.dumps(manifest, indent=1))
        done = run("pins", "sign", self.folder / f"{name}.json", "--key", self.key)
        assert done.returncode == 0, done.err
        (self.folder / f"{name}.signed").write_bytes(done.stdout)
        return self.folder / f"{name}.signed"


@pytest.fixture
def offline(tmp_path):
    return Offline(tmp_path / "offline")


def publish(served, offline, path):
    return run("pins", "publish", path, "--public-key", offline.public, "--data", served.data)


def asked(served, target: str, method: str = "GET"):
    return served.send(f"{method} {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode(), to_head=method == "HEAD")


def test_the_key_is_private_and_stays(offline):
    assert offline.key.stat().st_mode & 0o777 == 0o600
    before = offline.key.read_bytes()
    done = run("pins", "keygen", offline.key)
    assert done.returncode == 1 and offline.key.read_bytes() == before


def test_another_implementation_verifies_what_is_signed(offline):
    signed = json.loads(offline.sign(offline.manifest(1)).read_bytes())
    assert set(signed) == {"manifest", "signature"}
    # To the byte, white space and all.
    assert decoded(signed["manifest"]) == (offline.folder / "manifest.json").read_bytes()
    key = Ed25519PublicKey.from_public_bytes(decoded(offline.public))
    key.verify(decoded(signed["signature"]), CONTEXT + decoded(signed["manifest"]))
    with pytest.raises(InvalidSignature):
        key.verify(decoded(signed["signature"]), decoded(signed["manifest"]))


def test_what_it_says_is_shown_once_it_is_checked(offline, tmp_path):
    path = offline.sign(offline.manifest(7))
    shown = json.loads(run("pins", "show", path, "--public-key", offline.public, "--json").out)
    assert (shown["app"], shown["version"]) == ("demo", 7)
    assert shown["hosts"] == [{"pattern": "**.example.com", "mode": "enforce", "pins": PINS}]
    text = run("pins", "show", path, "--public-key", offline.public).out
    assert "**.example.com\n" in text and all(pin in text for pin in PINS)
    stranger = Offline(tmp_path / "stranger")
    done = run("pins", "show", path, "--public-key", stranger.public)
    assert (done.returncode, done.out) == (1, "") and "none of the known keys has signed it" in done.err


def test_a_running_server_hands_out_what_is_published(served, offline):
    target = "/countersign/v1/pins/demo"
    assert asked(served, target).status == 404
    for version in (1, 2):
        path = offline.sign(offline.manifest(version))
        done = publish(served, offline, path)
        assert done.returncode == 0, done.err
        answer = asked(served, target)
        assert (answer.status, answer.body) == (200, path.read_bytes())
        assert answer.get("content-type") == "application/json" and "max-age=60" in answer.get("cache-control")
    assert asked(served, target, "HEAD").status == 200 and asked(served, target, "POST").status == 405
    assert [asked(served, f"/countersign/v1/pins{rest}").status for rest in ("/other", "/nobody", "/", "", "/..", "/demo/")] == [404] * 6
    assert "pins.publish" in served.admin("audit", "list").out


REFUSED = {
    "an older version": (lambda offline: offline.manifest(4), "version 4; expected one above 5"),
    "its time is over": (lambda offline: offline.manifest(9, not_before=1, not_after=2), "not valid after 2"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_published(served, offline, case):
    app = "other"
    manifest, reason = REFUSED[case]
    # What an earlier test has published is another key's, which this one may replace.
    assert publish(served, offline, offline.sign(offline.manifest(5, app))).returncode == 0
    before = asked(served, f"/countersign/v1/pins/{app}").body
    changed = manifest(offline)
    if changed["app"] == "demo":
        changed["app"] = app
    done = publish(served, offline, offline.sign(changed, "bad"))
    assert done.returncode == 1 and reason in done.err, done.err
    assert asked(served, f"/countersign/v1/pins/{app}").body == before


@pytest.mark.parametrize("change", ["signature", "manifest"])
def test_what_was_altered_is_not_published(served, offline, change):
    path = offline.sign(offline.manifest(99, "raced"))
    signed = json.loads(path.read_bytes())
    letters = signed[change]
    signed[change] = ("B" if letters[0] == "A" else "A") + letters[1:]
    path.write_text(json.dumps(signed))
    done = publish(served, offline, path)
    assert done.returncode == 1 and "signed" in done.err, done.err
    assert asked(served, "/countersign/v1/pins/raced").status == 404


def test_what_no_app_would_take_up_is_not_signed(offline):
    (offline.folder / "bad.json").write_text(json.dumps({**offline.manifest(1), "hosts": []}))
    done = run("pins", "sign", offline.folder / "bad.json", "--key", offline.key)
    assert (done.returncode, done.out) == (1, "") and "hosts" in done.err
