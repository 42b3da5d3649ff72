"""Rows that were altered in the database do not take from the operator what shows what happened: they are listed as altered, and an
export says what was left out."""

import json

import bearer
from gateway import run
from test_rows import Shop


def test_altered_rows_are_listed_and_stop_no_listing(tmp_path):
    shop = Shop(tmp_path)
    try:
        sessions = {one["account"]: one["session"] for one in json.loads(shop.admin("session", "list", "demo", "--json").out)["sessions"]}
        shop.admin("account", "lock", "demo", "user-0")
        shop.admin("account", "unlock", "demo", "user-0")
        assert shop.send(bearer.login(shop, "user-0")).status == 200
        shop.sql("UPDATE account SET user_id = 42 WHERE number = 1", "UPDATE session SET used = used + 1 WHERE account = 2")

        listed = json.loads(shop.admin("account", "list", "demo", "--json").out)["accounts"]
        assert [(one["number"], one["account"], one["state"]) for one in listed] == [(1, None, "altered"), (2, "user-1", "active")]
        done = shop.admin("account", "list", "demo")
        assert "number 1" in done.out and "altered" in done.out and "audit verify" in done.err

        live = {one["account"]: one for one in json.loads(shop.admin("session", "list", "demo", "--json").out)["sessions"]}
        assert live["number 1"]["kind"] == "bearer" and "altered" not in live["number 1"]
        assert live["user-1"] == {"session": sessions["user-1"], "account": "user-1", "altered": True}
        done = shop.admin("session", "list", "demo", "user-1")
        assert sessions["user-1"] in done.out and "altered" in done.out and "audit verify" in done.err

        records = json.loads(shop.admin("audit", "list", "--json").out)["records"]
        locked = [one for one in records if one["action"] == "account.lock"]
        assert locked[0]["account"] is None and locked[0]["pseudonym"].startswith("a_")
        assert locked[0]["pseudonym"] in shop.admin("audit", "list").out

        shown = json.loads(shop.admin("account", "show", "demo", "user-1", "--json").out)
        assert shown["altered_rows"] == 1 and shown["sessions"] == 0
        done = shop.admin("account", "export", "demo", "user-1")
        held = json.loads(done.out)
        assert held["altered"] == [{"table": "session", "row": sessions["user-1"]}] and held["sessions"] == []
        assert "altered rows: 1" in done.err
        # Whose data those of an altered account would be is not known.
        done = run("account", "export", "demo", "user-0", "--data", shop.data)
        assert done.returncode == 1 and "altered" in done.err
    finally:
        shop.stop()
