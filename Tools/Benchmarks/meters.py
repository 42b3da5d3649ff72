"""The CPU that processes use meanwhile, and the repetition of a measurement that was refused because the machine was too slow."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

from cases import Lie
from nginx import cpu

# A replay guard that is shared refuses a request that it cannot insert within 70 ms.
REFUSED = "HTTP/1.1 503 "
ATTEMPTS = 8


def repeated(work: Callable[[], Any], name: str) -> Any:
    """The result of `work`, which is repeated as a whole where a request was refused with 503: a round counts only if none was."""
    for attempt in range(ATTEMPTS):
        try:
            return work()
        except Lie as lie:
            if REFUSED not in str(lie) or attempt == ATTEMPTS - 1:
                raise
            print(f"bench: {name}: a request was refused with 503, and the round is repeated", file=sys.stderr, flush=True)
            # Until the backend has had what was under way.
            time.sleep(1)
    raise AssertionError("no attempt")


def times(pids: Iterable[int]) -> dict[int, float]:
    """The CPU of the processes that are there, in seconds."""
    found = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            found[pid] = cpu(pid)
    return found


class CPUMeter:
    """The CPU of groups of processes, whose ids may change: those that came meanwhile count from their start, and those that ended are
    lost. Such processes are the servers' for connections that last a moment, once a second for each gateway."""

    def __init__(self, groups: dict[str, Callable[[], Iterable[int]]]):
        self.groups = groups

    def during(self, work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
        """The result of `work`, and the seconds of CPU that each group used meanwhile."""
        before = {name: times(pids()) for name, pids in self.groups.items()}
        result = work()
        taken = {}
        for name, pids in self.groups.items():
            taken[name] = sum(end - before[name].get(pid, 0) for pid, end in times(pids()).items())
        return result, taken
