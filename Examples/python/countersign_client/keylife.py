"""How long the server recognizes an idempotency key (docs/protocol.md, "Idempotent requests"). After that time
it may do a later copy again, so the client sends none by itself."""

import time
from collections.abc import Callable

# The shortest time that a server may have, and what a client assumes that was not told. In seconds.
LOWEST = 600
HIGHEST = 86_400


def clocks() -> tuple[float, ...]:
    """The wall clock, which can be set, and the clock since the start, which also counts sleep where the system
    has such a clock."""
    asleep_too = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.time(), time.clock_gettime(asleep_too)


def stated(value: str | None) -> int | None:
    """The seconds in the value of `Idempotency-Keys-Kept`; None for a value that no server sends."""
    if value is None or not (value.isascii() and value.isdigit() and len(value) <= 5):
        return None
    return int(value) if LOWEST <= int(value) <= HIGHEST else None


class SendingTime:
    """When the first copy was sent that may have arrived."""

    def __init__(self, read: Callable[[], tuple[float, ...]] = clocks):
        self._read, self._began = read, read()

    def is_over(self, seconds: int) -> bool:
        """Whether so many seconds have passed by any clock."""
        return any(now - began >= seconds for now, began in zip(self._read(), self._began, strict=True))
