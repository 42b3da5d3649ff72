"""What an operator sees at night: each fault is on the console's first page within ten seconds, in words, and gone from it when it is mended;
and the page is there while the store is not."""

import contextlib
import datetime
import errno
import json
import pathlib
import re
import signal
import sqlite3

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from backend import Backend
from bearer import add_app, login
from failing import FailingDisk, needs_mounts
from test_console import Browser, Deployment, Visitor, chromium  # noqa: F401
from postgres import Postgres, programs
from waiting import until

SOON = 10


class Page:
    """The first page, as an operator who reads everything keeps loading it."""

    def __init__(self, visitor: Visitor):
        self.visitor = visitor

    def notices(self) -> tuple[str, str]:
        """What is wrong, and what is warned of; empty for nothing."""
        answer = self.visitor.get("/")
        assert answer.status == 200, answer.text
        found = [re.search(rf'<(\w+)[^>]* id="live-{name}"[^>]*>(.*?)</\1>', answer.text, re.S)[2] for name in ("ready", "warnings")]
        ready, warnings = (Browser.text_of(text).strip() for text in found)
        event = json.loads(self.visitor.get("/console/live").text.partition("data: ")[2])
        ready = "" if ready == "The server is ready." else ready
        # The page and its stream of events say the same, unless it changed in between.
        self.agree = bool(event["problems"]) == bool(ready) and bool(event["warnings"]) == bool(warnings)
        return ready, warnings

    def until(self, *, wrong: str = "", warned: str = "") -> None:
        """Waits until it shows what is wrong and warned of: a part of the text, or empty for nothing."""
        def is_shown() -> bool:
            shown = zip((wrong, warned), self.notices())
            return all(part in text and bool(part) == bool(text) for part, text in shown) and self.agree

        until(is_shown, self.notices)

    @property
    def text(self) -> str:
        return Browser.text_of(self.visitor.get("/").text)


def night(deployment: Deployment) -> Page:
    page = Page(deployment.visit("--read-only"))
    page.until()
    return page


def test_the_backend_goes_and_returns(tmp_path):
    with Backend() as backend, Deployment(tmp_path, "--upstream", backend.url) as deployment:
        page, port = night(deployment), backend.port
        backend.close()
        # Without traffic, the gateway tries it every five seconds.
        page.until(wrong=f"upstream: 127.0.0.1:{port}")
        with Backend(port=port):
            page.until()


def test_the_backend_goes_under_traffic(tmp_path):
    with Backend() as backend, Deployment(tmp_path, "--upstream", backend.url) as deployment:
        deployment.add_app("demo")
        key = deployment.add_release()
        page, port = night(deployment), backend.port
        assert deployment.send(key.request()).status == 200
        backend.close()
        for _ in range(3):
            assert deployment.send(key.request()).status in (502, 503)
        page.until(wrong=f"upstream: 127.0.0.1:{port}")
        with Backend(port=port):
            page.until()


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC], ids=["EIO", "ENOSPC"])
def test_the_disk_of_the_store_fails(tmp_path, error):
    disk = FailingDisk(tmp_path)
    with Deployment(tmp_path / "gateway", environment=disk.environment) as deployment:
        add_app(deployment, 1)
        page = night(deployment)
        disk.fails(error)
        assert deployment.send(login(deployment, "user-0")).status == 503
        page.until(wrong="store: ")
        disk.is_well()
        page.until()


def test_the_store_is_locked(tmp_path):
    """By another program that writes and does not end."""
    with Deployment(tmp_path) as deployment:
        add_app(deployment, 1)
        page = night(deployment)
        with contextlib.closing(sqlite3.connect(deployment.data / "countersign.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            assert deployment.send(login(deployment, "user-0")).status == 503
            page.until(warned="store: a change could not be written")
            # Two trial changes, each of which waits for the lock.
            page.until(wrong="store: ")
            other.execute("ROLLBACK")
        page.until()


@pytest.mark.skipif(programs() is None, reason="no postgres")
def test_the_page_is_there_while_the_store_is_not(tmp_path):
    """The database is away: what the process itself knows is shown, and what is not there is said."""
    database = Postgres()
    try:
        with Deployment(tmp_path, environment={"COUNTERSIGN_STORE": database.create("night")}) as deployment:
            page = night(deployment)
            database.stop()
            text = page.text
            assert text.count("This cannot be shown now: ") == 3 and "Requests a minute in the last hour" in text, text
            database.start()
            until(lambda: "This cannot be shown now" not in page.text and "Audit records" in page.text, lambda: page.text)
    finally:
        database.remove()


def certificate(folder: pathlib.Path, days: float) -> None:
    """In the place where the gateway keeps its own; `days` before it ends, or since it has ended if negative."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = (x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
            .serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=90))
            .not_valid_after(now + datetime.timedelta(days=days)).sign(key, hashes.SHA256()))
    (folder / "certificate.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))


def test_a_certificate_ends(tmp_path):
    with Deployment(tmp_path) as deployment:
        page = night(deployment)
        for days, said, mark in ((20.5, "it ends at ", "20 days left"), (-1, "it has ended at ", "has ended")):
            certificate(deployment.data / "tls", days)
            deployment.process.send_signal(signal.SIGHUP)
            page.until(warned=f"certificate: {said}")
            assert mark in page.text
        certificate(deployment.data / "tls", 60)
        deployment.process.send_signal(signal.SIGHUP)
        page.until()


def test_a_reload_of_a_broken_file_fails(tmp_path):
    settings = tmp_path / "settings.json"
    settings.write_text("{}")
    with Deployment(tmp_path, "--config", settings) as deployment:
        page = night(deployment)
        for broken, said in (('{"limit-head": <b>', "settings.json"), ('{"limit-head": "much"}', "limit-head"),
                             ('{"tls": "/nonexistent.pem,/nonexistent.key"}', "/nonexistent")):
            settings.write_text(broken)
            deployment.process.send_signal(signal.SIGHUP)
            page.until(warned="reload: that of ")
            until(lambda: said in page.text, lambda: page.text)
            assert "nothing was applied" in page.text
        # Not who reads apps alone: the report has settings and paths.
        other = deployment.visit("--scope", "apps:read")
        assert "nonexistent" not in other.get("/").text and "nonexistent" not in other.get("/console/live").text
        settings.write_text("{}")
        deployment.process.send_signal(signal.SIGHUP)
        page.until()


@needs_mounts
def test_the_data_folders_disk_is_full(tmp_path):
    deployment = Deployment(tmp_path)
    deployment.data.mkdir(parents=True)
    mount = f'mount -t tmpfs -o size=160m,mode=700 none "{deployment.data}" && exec "$@"'
    deployment.start(prefix=("unshare", "-m", "sh", "-c", mount, "sh"))
    with contextlib.closing(contextlib.ExitStack()) as stack:
        stack.callback(deployment.stop)
        page = night(deployment)
        ballast = deployment.seen_data / "ballast"
        with open(ballast, "ab", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(bytes(1 << 16)):
                pass
        page.until(warned=f"disk: 0 MiB are free for {deployment.data}")
        ballast.unlink()
        page.until()


def test_an_open_page_follows(chromium, tmp_path):  # noqa: F811
    """By its script, without a reload."""
    settings = tmp_path / "settings.json"
    settings.write_text("{}")
    with Deployment(tmp_path, "--config", settings) as deployment:
        driver = Browser(chromium, deployment).sign_in().driver
        notice = driver.find_element(By.ID, "live-warnings")
        assert not notice.is_displayed()
        settings.write_text("{")
        deployment.process.send_signal(signal.SIGHUP)
        WebDriverWait(driver, SOON).until(lambda _: notice.is_displayed())
        assert notice.text.startswith("Warnings: reload: that of ") and "nothing was applied" in notice.text
        settings.write_text("{}")
        deployment.process.send_signal(signal.SIGHUP)
        WebDriverWait(driver, SOON).until(lambda _: not notice.is_displayed())
