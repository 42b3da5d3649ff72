"""Fixtures for the black-box tests: each test, or module of tests, has a gateway and data folder of its own."""

import pathlib
import subprocess

import pytest

import needs
import processes
from backend import Backend
from gateway import BINARY, Gateway
from postgres import Postgres
from products import ROOT


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="the long forms: 1 GiB streams, twenty kills")


def pytest_sessionstart(session: pytest.Session) -> None:
    if not pathlib.Path(BINARY).is_file():
        pytest.exit(f"{BINARY} is not there; script/setup builds it", returncode=3)


@pytest.hookimpl(hookwrapper=True)
def pytest_fixture_setup(fixturedef, request):
    owner = processes.Owner()
    # Finalizers run in reverse order: the fixture's own teardown comes first.
    fixturedef.addfinalizer(owner.end)
    with owner:
        yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item, nextitem):
    owner = processes.Owner()
    try:
        with owner:
            yield
    finally:
        owner.end()


NOTES: list[str] = []


@pytest.fixture(scope="session")
def note():
    """Says a measured figure, which is shown behind the tests whether they pass or not."""
    return NOTES.append


def pytest_sessionfinish(session: pytest.Session) -> None:
    # Where tests run side by side, each process hands its notes to the one that speaks.
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["notes"] = NOTES


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error) -> None:
    NOTES.extend(getattr(node, "workeroutput", {}).get("notes", []))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.skipped and not hasattr(report, "wasxfail") and not needs.is_excused(report.longrepr[2]):
        report.outcome, report.longrepr = "failed", f"{report.longrepr[2]}, and COUNTERSIGN_NO_SKIPS is set"


def pytest_terminal_summary(terminalreporter) -> None:
    for text in NOTES:
        terminalreporter.write_line(f"measured: {text}")


@pytest.fixture(scope="session")
def is_long(request: pytest.FixtureRequest) -> bool:
    return request.config.getoption("--long")


@pytest.fixture(scope="session")
def tools(tmp_path_factory):
    """A folder with the benchmarks' programs."""
    folder = tmp_path_factory.mktemp("tools")
    for name, libraries in (("load", ["-lssl", "-lcrypto"]), ("backend", [])):
        subprocess.run(["cc", "-O1", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-Wno-deprecated-declarations",
                        "-o", folder / name, ROOT / f"Tools/Benchmarks/{name}.c", *libraries], check=True)
    return folder


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
def server():
    """A PostgreSQL server of one module."""
    running = Postgres()
    yield running
    running.remove()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory):
    """A gateway with TLS and the echo, with the app `demo` and its release key, for the tests of one module."""
    with Gateway(tmp_path_factory.mktemp("shared")) as running:
        running.add_app("demo")
        running.key = running.add_release()
        yield running
