"""A call of the admin API and a page of the console run a bounded number of SQL statements, however many rows there are, and
check neither the whole file nor a table that grows with people. What the server's own connections run meanwhile is not counted."""

import re
import sqlite3

import pytest

from statements import Statements
from test_admin_api import Deployment as Called
from test_console import Deployment as Visited

MOST = {
    "/api/v1/apps": 35, "/api/v1/apps/demo/policy": 15, "/api/v1/apps/demo/accounts/anna": 50, "/api/v1/audit": 20,
    "/": 135, "/console/apps/demo": 115, "/console/apps/demo/accounts/anna": 110,
}
# Authenticated as a whole before each use; they have a row for each app, release or name.
SMALL = {"app", "app_setting", "release", "release_setting", "release_rollout", "meta"}


class Deployment(Called, Visited):
    """A gateway with the API and the console."""


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("statements")
    statements = Statements(folder)
    with Deployment(folder, environment=statements.environment) as deployment:
        deployment.prepare()
        deployment.statements, deployment.visitor = statements, deployment.visit()
        # The server opens the store for all calls and pages when the operator signs in.
        deployment.connection = statements.last_connection()
        yield deployment


def run_by(served, path: str) -> list[str]:
    """The statements on the connection of calls and pages; no other one is opened."""
    before, last = len(served.statements.on(served.connection)), served.statements.last_connection()
    status = served.call("GET", path)[0] if path.startswith("/api/") else served.visitor.get(path).status
    assert status == 200 and served.statements.last_connection() == last
    return served.statements.on(served.connection)[before:]


def fill(served) -> None:
    """Rows that no page shows in full."""
    for number in range(5):
        served.admin("account", "add", "demo", f"more-{number}")
    database = sqlite3.connect(served.data / "countersign.db", isolation_level=None)
    database.execute("WITH RECURSIVE many(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM many WHERE n < 2000) "
                     "INSERT INTO webhook_delivery (endpoint, event, account, created, due, attempts, given_up, body) "
                     "SELECT 'w_1', 'evt_1', 0, unixepoch(), 0, 0, unixepoch(), zeroblob(40) FROM many")
    database.close()


def test_few_statements_however_many_rows(served, note):
    first = {path: run_by(served, path) for path in MOST}
    for path, most in MOST.items():
        found = first[path]
        note(f"{path}: {len(found)} statements")
        assert 0 < len(found) <= most, f"{path}: {len(found)}\n" + "\n".join(found)
        checked = [re.search(r"(quick|integrity)_check(\((\w+)\))?", sql) for sql in found if "_check" in sql]
        assert {match[3] for match in checked if match} <= SMALL, f"{path}: {checked}"
    fill(served)
    # The audit log has more records to name accounts of.
    for path in MOST.keys() - {"/api/v1/audit", "/"}:
        assert 0 < len(run_by(served, path)) <= MOST[path], path
