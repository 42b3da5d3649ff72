"""The two paths on which the engine serves a request that need not wait: by callbacks, as every server does, and by the connection's
task, which only countersign-breakable can do (docs/decisions/0062-requests-without-a-task.md)."""

import os

import pytest

from products import BREAKABLE, TASKS

CALLBACKS = "callbacks"
PATHS = [CALLBACKS, "tasks"]


def options_of(path: str) -> tuple[str, ...]:
    """The options of a server on that path."""
    if path == CALLBACKS:
        return ()
    if not os.access(BREAKABLE, os.X_OK):
        pytest.skip("no program that serves by tasks alone: swift build makes it")
    return (TASKS,)
