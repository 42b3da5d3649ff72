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
    end, pause = time.monotonic() + HANGS, 0.001
    while not (result := condition()):
        if time.monotonic() > end:  # lint: poll
            raise AssertionError(f"hangs: {expected() if callable(expected) else expected}")
        time.sleep(pause)  # lint: poll
        pause = min(2 * pause, 0.02)
    return result
