"""The sealed file under each of its guards, in a process of its own: one contract for all. And what it says when it is closed or gone:
never that nothing is there."""

from vaults import ask

PASSPHRASE = {"VAULT_PASSPHRASE": "correct horse"}
ITEM = ("service", "account")


def keeps_the_contract(back_end, folder, **variables) -> bool:
    lines = ask(back_end, folder, "contract", **variables).splitlines()
    assert all(line.startswith("ok ") for line in lines), lines
    return len(lines) >= 9


def test_a_file_under_a_passphrase(tmp_path):
    assert keeps_the_contract("passphrase", tmp_path, **PASSPHRASE)


def test_a_file_with_its_key_beside_it(tmp_path):
    assert keeps_the_contract("folder", tmp_path / "vault")
    (tmp_path / "vault/items.key").unlink()
    assert ask("folder", tmp_path / "vault", "read", *ITEM).startswith("failed: ")


def test_a_place_asks_for_its_passphrase(tmp_path):
    folder = tmp_path / "app"
    assert ask("place", folder, "write", *ITEM, "held", **PASSPHRASE) == ""
    assert ask("place", folder, "read", *ITEM, **PASSPHRASE) == "value held"
    assert ask("place", folder, "read", *ITEM).startswith("locked: ")
    assert ask("place", folder, "read", *ITEM, VAULT_PASSPHRASE="wrong").startswith("locked: ")
