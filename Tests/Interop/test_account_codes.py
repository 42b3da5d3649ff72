"""Codes that an account's owner enters, and verified accounts: over the command line and over the API, with the least scope, under guesses at
once, with rows that another program has changed, and over a backup."""

import concurrent.futures
import json
import pathlib
import re
import sqlite3

import pytest

from gateway import Gateway, run
from person import Person
from test_admin_api import Deployment


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with Deployment(tmp_path_factory.mktemp("codes")) as running:
        running.add_app("demo", registration="open")
        yield running


def code_of(gateway: Gateway, name: str, *options: str) -> str:
    made = json.loads(gateway.admin("account", "code", "demo", name, *options, "--json").out)
    assert re.fullmatch(r"\d{8}", made["code"])
    return made["code"]


def redeem(gateway: Gateway | pathlib.Path, name: str, code: str, *options: str) -> dict:
    done = run("account", "redeem", "demo", name, "--code-stdin", *options, "--json", "--data",
               gateway if isinstance(gateway, pathlib.Path) else gateway.data, stdin=code)
    outcome = json.loads(done.out)
    assert done.returncode == (0 if outcome["accepted"] else 1), done.err
    return outcome


def shown(gateway: Gateway, name: str) -> dict:
    return json.loads(gateway.admin("account", "show", "demo", name, "--json").out)


def other(code: str, by: int = 1) -> str:
    return f"{(int(code) + by) % 10**8:08}"


def test_a_code_verifies_an_account_once(served):
    served.admin("account", "add", "demo", "anna")
    code = code_of(served, "anna")
    assert shown(served, "anna")["verified"] is None
    assert shown(served, "anna")["codes"][0]["tries_left"] == 5
    wrong = redeem(served, "anna", other(code))
    assert (wrong["reason"], wrong["tries_left"]) == ("wrong", 24), "without an id"
    assert redeem(served, "anna", f"{code[:4]} {code[4:]}")["accepted"]
    verified = shown(served, "anna")["verified"]
    assert verified and shown(served, "anna")["codes"] == []
    assert redeem(served, "anna", code)["reason"] == "none", "a code is used once"
    listed = json.loads(served.admin("account", "list", "demo", "--json").out)["accounts"]
    assert {each["account"]: each["verified"] for each in listed}["anna"] == verified
    # An operator takes it back, and does it without a code.
    assert json.loads(served.admin("account", "verify", "demo", "anna", "--undo", "--json").out)["verified"] is None
    assert "not verified" in served.admin("account", "verify", "demo", "anna", "--undo").out
    assert "verified since" in served.admin("account", "verify", "demo", "anna").out
    actions = [record["action"] for record in json.loads(served.admin("audit", "list", "--last", "100", "--json").out)["records"]]
    assert actions.count("account.verify") == 3 and "account.redeem" in actions and "account.code" in actions
    assert code not in served.admin("audit", "list", "--last", "100").out


def test_a_code_is_for_one_purpose_and_account(served):
    for name in ("berta", "bodo"):
        served.admin("account", "add", "demo", name)
    code = code_of(served, "berta", "--purpose", "sign-in")
    assert redeem(served, "berta", code)["reason"] == "none", "of another purpose"
    assert redeem(served, "bodo", code, "--purpose", "sign-in")["reason"] == "none", "of another account"
    assert redeem(served, "berta", code, "--purpose", "sign-in")["accepted"]
    assert shown(served, "berta")["verified"] is None, "only the purpose verify verifies"
    # A later code replaces no earlier one: a stranger may have asked for it. With one, all of the purpose are used up.
    first, second = code_of(served, "berta"), code_of(served, "berta")
    assert redeem(served, "berta", first)["accepted"]
    assert redeem(served, "berta", second)["reason"] == "none"


def test_guesses_at_once_have_five_tries_together(served):
    served.admin("account", "add", "demo", "carl")
    made = json.loads(served.admin("account", "code", "demo", "carl", "--json").out)
    code, named = made["code"], ("--id", made["id"])
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        outcomes = list(pool.map(lambda number: redeem(served, "carl", other(code, number + 1), *named), range(12)))
    assert sorted(each["tries_left"] for each in outcomes if each["reason"] == "wrong") == [0, 1, 2, 3, 4]
    assert [each["reason"] for each in outcomes].count("none") == 7
    assert redeem(served, "carl", code)["reason"] == "none", "no try is left for the right one"


def test_guesses_without_an_id_use_up_no_code(served):
    """They have a budget of their own: a stranger takes away what no owner holds, and cannot guess for ever."""
    served.admin("account", "add", "demo", "cora")
    made = json.loads(served.admin("account", "code", "demo", "cora", "--json").out)
    for left in reversed(range(25)):
        assert redeem(served, "cora", other(made["code"]))["tries_left"] == left
    limited = redeem(served, "cora", made["code"])
    assert (limited["accepted"], limited["reason"], limited["tries_left"]) == (False, "limited", None)
    assert [each["tries_left"] for each in shown(served, "cora")["codes"]] == [5]
    assert redeem(served, "cora", made["code"], "--id", made["id"])["accepted"]


def test_a_stranger_uses_up_no_code_of_the_owner(served):
    """A stranger has codes made for the owner, and enters wrong ones: the owner's stays good."""
    served.admin("account", "add", "demo", "olga")

    def made(*options: str) -> dict:
        return json.loads(served.admin("account", "code", "demo", "olga", *options, "--json").out)

    owners = made("--valid", "1h")
    assert re.fullmatch("c_[0-9a-f]{16}", owners["id"])
    strangers = [made() for _ in range(4)]
    refused = run("account", "code", "demo", "olga", "--data", served.data)
    assert refused.returncode == 1 and "has 5 codes for verify that are still valid" in refused.err and refused.out == ""
    for one in strangers:
        for left in (4, 3, 2, 1, 0):
            assert redeem(served, "olga", other(owners["code"]), "--id", one["id"])["tries_left"] == left
        assert redeem(served, "olga", other(owners["code"]), "--id", one["id"])["reason"] == "none"
    # Codes that were tried too often count for the pace: after five in a day there is one an hour.
    refused = run("account", "code", "demo", "olga", "--data", served.data)
    assert refused.returncode == 1 and "can now get one an hour" in refused.err
    assert code_of(served, "olga", "--purpose", "sign-in"), "each purpose by itself"
    assert redeem(served, "olga", owners["code"], "--id", owners["id"])["accepted"]
    assert run("account", "redeem", "demo", "olga", "--code-stdin", "--id", "c_1", "--data", served.data, stdin="12345678").returncode == 2


def test_reset_codes_live_side_by_side(served, tmp_path):
    """Each code that a stranger asks for reaches the owner, and makes none useless that the owner has."""
    person = Person(served, tmp_path / "p", "rita").signs_up()

    def made(*options: str) -> str:
        return json.loads(served.admin("account", "reset", "demo", "rita", *options, "--json").out)["reset_code"]

    def sets(code: str) -> int:
        return person.run("signup", "--account", "rita", "--reset-code-stdin", "--password-stdin",
                          stdin=f"{code}\nanother long password\n").returncode

    codes = [made() for _ in range(5)]
    refused = run("account", "reset", "demo", "rita", "--data", served.data)
    assert refused.returncode == 1 and "has 5 reset codes that are still valid" in refused.err and "--replace" in refused.err
    assert sets(codes[0]) == 0, "the first one is good still"
    assert [sets(code) for code in codes] == [1] * 5, "with one, the others are used up"
    # An administrator withdraws codes that fell into wrong hands, at any time.
    codes = [made() for _ in range(5)]
    last = made("--replace")
    assert [sets(code) for code in codes] == [1] * 5 and sets(last) == 0


def test_one_code_is_accepted_once_at_once(served):
    served.admin("account", "add", "demo", "clara")
    code = code_of(served, "clara")
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(lambda _: redeem(served, "clara", code)["accepted"], range(8)))
    assert outcomes.count(True) == 1


@pytest.mark.parametrize("words, reason", [
    (("account", "code", "demo", "nobody"), "has none of that name"), (("account", "verify", "demo", "nobody"), "has none of that name"),
    (("account", "code", "demo", "dora", "--purpose", "No"), "1 to 32 lower-case letters"),
    (("account", "code", "demo", "dora", "--valid", "2d"), "1s to 24h"),
    (("account", "reset", "demo", "dora", "--if-verified"), "is not verified"),
    (("account", "redeem", "demo", "dora", "--code-stdin"), "eight digits")])
def test_what_is_wrong_is_named(served, words, reason):
    if not any(each["account"] == "dora" for each in json.loads(served.admin("account", "list", "demo", "--json").out)["accounts"]):
        served.admin("account", "add", "demo", "dora")
    done = run(*words, "--data", served.data, stdin="1234")
    assert done.returncode in (1, 2) and reason in done.err, done.err


def test_the_api_with_the_least_scopes(served):
    served.admin("account", "add", "demo", "emil")
    tokens = {scope: served.token_for(scope.replace(":", "-"), [scope])
              for scope in ("accounts:verify", "accounts:recover", "accounts:write", "accounts:read")}
    path = "/api/v1/apps/demo/accounts/emil"

    def call(scope: str, method: str, place: str, body: object = None) -> tuple[int, dict]:
        return served.call(method, place, body, token=tokens[f"accounts:{scope}"])[:2]

    assert call("recover", "POST", f"{path}/reset", {"if_verified": True})[0] == 409
    status, made = call("verify", "POST", f"{path}/codes", {"valid": "5m"})
    assert status == 201
    assert call("verify", "POST", f"{path}/codes/redeem", {"code": other(made["code"]), "id": made["id"]})[1]["tries_left"] == 4
    assert call("verify", "POST", f"{path}/codes/redeem", {"code": made["code"]}) == (200, {
        "app": "demo", "account": "emil", "purpose": "verify", "accepted": True, "reason": None, "tries_left": None})
    assert call("verify", "POST", f"{path}/codes/redeem", {"code": "x"})[0] == 400
    assert call("verify", "POST", f"{path}/codes/redeem", {})[0] == 400
    assert call("recover", "POST", f"{path}/reset", {"if_verified": True})[1]["reset_code"]
    assert call("write", "DELETE", f"{path}/verification")[1]["verified"] is None
    assert call("write", "PUT", f"{path}/verification")[1]["verified"]
    # Neither does anything else, the other's work included.
    no = (403, "scope-missing")
    for scope in ("verify", "recover"):
        for method, place in (("GET", path), ("DELETE", path), ("PUT", f"{path}/lock"), ("PUT", f"{path}/verification"), ("GET", "/api/v1/apps")):
            status, problem = call(scope, method, place)
            assert (status, problem["code"]) == no, (scope, place)
    for scope, place in (("verify", "reset"), ("recover", "codes"), ("recover", "codes/redeem"), ("read", "codes"), ("read", "reset")):
        status, problem = call(scope, "POST", f"{path}/{place}", {"code": "12345678"} if "redeem" in place else {})
        assert (status, problem["code"]) == no, (scope, place)
    assert call("write", "POST", f"{path}/codes", {})[0] == 201 and call("write", "POST", f"{path}/reset", {})[0] == 201


def test_a_locked_account_has_no_codes(served):
    served.admin("account", "add", "demo", "lotte")
    code = code_of(served, "lotte", "--purpose", "sign-in")
    served.admin("account", "lock", "demo", "lotte")
    for words in (("code", "demo", "lotte"), ("redeem", "demo", "lotte", "--code-stdin", "--purpose", "sign-in")):
        refused = run("account", *words, "--data", served.data, stdin=code)
        assert refused.returncode == 1 and "is locked" in refused.err
    served.admin("account", "unlock", "demo", "lotte")
    assert redeem(served, "lotte", code, "--purpose", "sign-in")["reason"] == "none", "the lock has ended it"


def test_an_account_has_eight_codes(served):
    served.admin("account", "add", "demo", "otto")
    first, *_ = [json.loads(served.admin("account", "code", "demo", "otto", "--purpose", f"purpose-{number}", "--json").out)
                 for number in range(8)]
    refused = run("account", "code", "demo", "otto", "--purpose", "ninth", "--data", served.data)
    assert refused.returncode == 1 and "has codes for 8 purposes" in refused.err and "purpose-7" in refused.err
    for number in range(5):
        redeem(served, "otto", other(first["code"], number + 1), "--purpose", "purpose-0", "--id", first["id"])
    code_of(served, "otto", "--purpose", "ninth")


def test_rows_of_another_program_count_as_none(tmp_path):
    gateway = Gateway(tmp_path)
    with gateway:
        gateway.add_app("demo", registration="open")
        for name in ("mallory", "victim"):
            gateway.admin("account", "add", "demo", name)
        gateway.admin("account", "verify", "demo", "mallory")
        code = code_of(gateway, "mallory", "--purpose", "sign-in")
        numbers = {each["account"]: each["number"] for each in json.loads(gateway.admin("account", "list", "demo", "--json").out)["accounts"]}
    database = sqlite3.connect(gateway.data / "countersign.db", isolation_level=None)
    mine, victim = numbers["mallory"], numbers["victim"]
    # The attacker gives the victim rows of an account of their own, and their code more tries and time.
    database.execute("INSERT INTO account_verification SELECT ?, verified, row_tag FROM account_verification WHERE account = ?", (victim, mine))
    database.execute("INSERT INTO account_code SELECT ?, id, purpose, digest, made, expires, tries, row_tag FROM account_code WHERE account = ?",
                     (victim, mine))
    assert shown(gateway, "victim")["verified"] is None
    assert redeem(gateway, "victim", code, "--purpose", "sign-in")["reason"] == "none"
    assert database.execute("UPDATE account_code SET expires = expires + 100000 WHERE account = ?", (mine,)).rowcount == 1
    assert redeem(gateway, "mallory", code, "--purpose", "sign-in")["reason"] == "none"
    database.execute("UPDATE account_code SET expires = expires - 100000 WHERE account = ?", (mine,))
    kept, = database.execute("SELECT * FROM account_code WHERE account = ?", (mine,))
    assert redeem(gateway, "mallory", code, "--purpose", "sign-in")["accepted"]
    database.close()
    # Reading the file would end the locks of a connection of this process.
    assert code.encode() not in (gateway.data / "countersign.db").read_bytes()
    database = sqlite3.connect(gateway.data / "countersign.db", isolation_level=None)
    # A used code, and a verification that was taken back, are authentic rows when they are put back.
    database.execute(f"INSERT INTO account_code VALUES ({','.join('?' * len(kept))})", kept)
    again = run("account", "redeem", "demo", "mallory", "--code-stdin", "--purpose", "sign-in", "--data", gateway.data, stdin=code)
    assert again.returncode == 1 and "account_code: the rows of account" in again.err and again.out == ""
    kept, = database.execute("SELECT * FROM account_verification WHERE account = ?", (mine,))
    gateway.admin("account", "verify", "demo", "mallory", "--undo")
    database.execute("INSERT INTO account_verification VALUES (?, ?, ?)", kept)
    again = run("account", "reset", "demo", "mallory", "--if-verified", "--data", gateway.data)
    assert again.returncode == 1 and "account_verification: the rows of account" in again.err and again.out == ""
    gateway.accept_rows()
    assert shown(gateway, "mallory")["verified"] is None and shown(gateway, "mallory")["codes"] == []


def test_a_restored_copy_has_verifications_and_no_codes(tmp_path):
    gateway = Gateway(tmp_path / "before")
    with gateway:
        gateway.add_app("demo", registration="open")
        gateway.admin("account", "add", "demo", "frieda")
        gateway.admin("account", "verify", "demo", "frieda")
        code = code_of(gateway, "frieda", "--purpose", "sign-in")
        done = run("backup", tmp_path / "copy", "--data", gateway.data)
        assert done.returncode == 0, done.err
        assert redeem(gateway, "frieda", code, "--purpose", "sign-in")["accepted"]
    restored = tmp_path / "after"
    done = run("restore", tmp_path / "copy", "--data", restored, "--master-key", gateway.data / "master.key")
    assert done.returncode == 0, done.err
    held = json.loads(run("account", "show", "demo", "frieda", "--json", "--data", restored).out)
    assert held["verified"] and held["codes"] == []
    assert redeem(restored, "frieda", code, "--purpose", "sign-in")["reason"] == "none", "it would be good twice"


def test_erased_and_exported(served, tmp_path):
    person = Person(served, tmp_path / "p", "gundula-of-the-codes").signs_up()
    code_of(served, person.name, "--purpose", "sign-in")
    served.admin("account", "verify", "demo", person.name)
    exported = json.loads(served.admin("account", "export", "demo", person.name).out)["account"]
    assert exported["verified"] and exported["codes"][0]["purpose"] == "sign-in"
    served.admin("account", "erase", "demo", person.name, "--yes")
    database = sqlite3.connect(f"file:{served.data / 'countersign.db'}?mode=ro", uri=True)
    number = exported["number"]
    for table in ("account_code", "account_verification"):
        assert database.execute(f"SELECT count(*) FROM {table} WHERE account = ?", (number,)).fetchone() == (0,)
