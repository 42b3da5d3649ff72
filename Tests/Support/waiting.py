"""Waiting for events. A test depends on order and never on duration: a wait ends with its event. The one limit means that
something hangs; no test asserts how long an event took."""

import time
from collections.abc import Callable
from typing import TypeVar

# Seconds. Far more than any event takes on a slow machine.
HANGS = 60
Result = TypeVar("Result")


def until(condition: Callable[[], Result], expected: object = "the event") -> Result:
    """The first true result of `condition`. `expected` names the event; a function is called for the failure's message."""
    end = time.monotonic() + HANGS
    while not (result := condition()):
        assert time.monotonic() < end, f"hangs: {expected() if callable(expected) else expected}"
        time.sleep(0.02)  # lint: the one poll, for events that have no descriptor
    return result
