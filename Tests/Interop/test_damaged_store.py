"""A server does not start on a damaged store, whichever component comes to the damaged page first: it says what every command says,
and changes nothing."""

import pytest

from gateway import Gateway, run

PAGE = 4_096


def contents(gateway: Gateway) -> dict[str, bytes]:
    """Without the log of the store, which SQLite makes and removes."""
    return {file.name: file.read_bytes() for file in gateway.data.iterdir() if file.is_file() and not file.name.endswith(("-wal", "-shm"))}


@pytest.mark.parametrize("damage", [b"\xa5" * 64, b"\0" * PAGE], ids=["beginning", "zeros"])
def test_a_damaged_page_refuses_the_start(tmp_path, damage):
    gateway = Gateway(tmp_path)
    with gateway:
        gateway.add_app()
        gateway.add_release()
    database = gateway.data / "countersign.db"
    sound, expected = database.read_bytes(), None
    for page in range(1, len(sound) // PAGE):
        start = page * PAGE
        database.write_bytes(sound[:start] + damage + sound[start + len(damage):])
        before = contents(gateway)
        if expected is None:
            command = run("app", "list", "--data", gateway.data)
            expected = (command.returncode, command.err)
            assert command.returncode != 0 and command.err.endswith("damaged; restore a backup\n"), command.err
        done = run(*gateway.command()[1:])
        assert (done.returncode, done.err, done.out) == (*expected, ""), (page, done.err)
        assert contents(gateway) == before, page
    database.write_bytes(sound)
    with gateway:
        pass
