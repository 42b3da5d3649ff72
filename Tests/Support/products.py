"""The programs under test. Each is named here and nowhere else:

BINARY     `countersign` as it ships: the release build's. COUNTERSIGN_BINARY names another.
BREAKABLE  `countersign-breakable`, which can be started with planted faults: the debug build's. COUNTERSIGN_BREAKABLE names another.
peer()     the peers of the tests: the debug build's. COUNTERSIGN_PEERS names another folder.
"""

import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("COUNTERSIGN_BINARY", str(ROOT / ".build/release/countersign"))
BREAKABLE = os.environ.get("COUNTERSIGN_BREAKABLE", str(ROOT / ".build/debug/countersign-breakable"))
PEERS = pathlib.Path(os.environ.get("COUNTERSIGN_PEERS", ROOT / ".build/debug"))
# The option that plants a fault; only BREAKABLE has it.
PLANT = "--sabotage"
# The option that has a task serve every request; only BREAKABLE has it.
TASKS = "--tasks-alone"
# The sample app (Examples/Notes).
NOTES = str(PEERS / "notes")


def serving(options: object) -> str:
    """The program that runs a server with these options."""
    return BREAKABLE if PLANT in options or TASKS in options else BINARY


def peer(name: str) -> list[str]:
    """The command of a peer (Tests/Peers)."""
    return [str(PEERS / "test-peers"), name]
