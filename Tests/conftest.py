"""Fixtures for the black-box tests: each test, or module of tests, has a gateway and data folder of its own."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent / "Support"))

from backend import Backend  # noqa: E402
from gateway import BINARY, Gateway  # noqa: E402


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="the long forms: 1 GiB streams, twenty kills")


def pytest_sessionstart(session: pytest.Session) -> None:
    if not pathlib.Path(BINARY).is_file():
        pytest.exit(f"{BINARY} is not there; script/setup builds it", returncode=3)


@pytest.fixture(scope="session")
def is_long(request: pytest.FixtureRequest) -> bool:
    return request.config.getoption("--long")


@pytest.fixture
def gateway(tmp_path: pathlib.Path):
    """A gateway with TLS and the built-in echo, for one test."""
    with Gateway(tmp_path) as running:
        yield running


@pytest.fixture
def backend():
    with Backend() as running:
        yield running


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory):
    """A gateway with TLS and the echo, with the app `demo` and its release key, for the tests of one module."""
    with Gateway(tmp_path_factory.mktemp("shared")) as running:
        running.add_app("demo")
        running.key = running.add_release()
        yield running
