"""A backend behind HTTPS: its certificate is checked against the system's authorities and its name, or nothing is sent."""

import json

import pytest

from gateway import Gateway


@pytest.fixture(name="backend", scope="module")
def start_backend(tmp_path_factory):
    """Another gateway serves as backend: it has a certificate for localhost, and refuses what it is sent by name."""
    with Gateway(tmp_path_factory.mktemp("backend")) as backend:
        yield backend


def answer(tmp_path, backend, url: str, environment: dict[str, str]) -> tuple[int, str]:
    with Gateway(tmp_path, "--upstream", url, environment=environment) as gateway:
        gateway.add_app()
        key = gateway.add_release()
        # The backend must take the request for its own, or it would refuse its Host.
        got = gateway.send(key.request())
        return got.status, json.loads(got.body)["code"]


def test_a_trusted_backend_is_reached(tmp_path, backend):
    trust = {"SSL_CERT_FILE": str(backend.data / "tls/certificate.pem")}
    status, code = answer(tmp_path, backend, f"https://localhost:{backend.port}", trust)
    # `malformed` is the backend's word: the Host is the first gateway's. Ours would have been 502.
    assert (status, code) == (400, "malformed")


@pytest.mark.parametrize("case", ["unknown authority", "another name"])
def test_an_untrusted_backend_gets_nothing(tmp_path, backend, case):
    trust = {"SSL_CERT_FILE": str(backend.data / "tls/certificate.pem")} if case == "another name" else {}
    host = "127.0.0.2" if case == "another name" else "localhost"
    seen = len(backend.events())
    assert answer(tmp_path, backend, f"https://{host}:{backend.port}", trust) == (502, "upstream-failed")
    assert len(backend.events()) == seen
