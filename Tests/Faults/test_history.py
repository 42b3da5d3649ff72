"""Three nodes over PostgreSQL and Redis, concurrent clients, and faults of each kind: the checker (Tests/Support/history.py) finds no
violation in what clients, backend and database saw. It finds each planted fault. COUNTERSIGN_LONG=1 runs
all of these; script/chaos is the long form, at random."""

import os
import shutil

import pytest

import chaos
import needs
from chaos_faults import forget_unnoticed
from history import OK
from postgres import programs

# Which of the faults meets which request is chance.
pytestmark = [pytest.mark.full,
              pytest.mark.skipif(programs() is None or not shutil.which("redis-server"), reason="no postgres, or no redis-server")]
IS_LONG = bool(os.environ.get("COUNTERSIGN_LONG"))

# Those that make Redis forget come last: requests are refused for some 20 s after them.
RUNS = {
    "PostgreSQL": ["restart-postgres", "cut-link", "kill-node", "promote-standby", "stop", "restart-postgres"],
    "Redis": ["half-close-link", "delay-link", "stop", "hold-link", "promote-replica"],
    "both": ["kill-node", "stop", "restart-redis", "promote-standby", "flush-redis"],
}


def rules(run: chaos.Run) -> set[str]:
    return {violation.rule for violation in run.check()}


@pytest.mark.parametrize("name", RUNS if IS_LONG else ["both"])
def test_no_violation(name, note):
    lines: list[str] = []
    run = chaos.Run(name, 15, faults=RUNS[name], most_stop=20 if IS_LONG else 4, note=lines.append)
    found = run.check()
    assert found == [], "\n".join([*lines, *map(str, found)])
    assert [fault.name for fault in run.history.faults] == RUNS[name] and all(fault.shown for fault in run.history.faults)
    # There was something to find violations in.
    for kind in ("request", "keyed", "login", "use", "end", "add-account", "retire-release", "use-release"):
        assert any(operation.answer == OK for operation in run.history.of(kind)), kind
    slowest = max(moment - fault.healed for fault in run.history.faults for moment in fault.ready.values())
    note(f"history under faults of {name}: {len(run.history.operations)} operations, {len(lines)} faults, no violation; "
         f"all nodes ready again within {slowest:.1f} s")


def test_no_violation_with_postgresql_as_the_replay_guard(note):
    run = chaos.Run("alone", 8, faults=["kill-node", "promote-standby"], most_stop=4, replay="postgres", note=lambda _: None)
    found = run.check()
    assert found == [], "\n".join(map(str, found))
    promotion = run.history.faults[1]
    assert promotion.shown and promotion.refused_by_design > 0, "the promotion raised no floor"
    note(f"history over PostgreSQL alone: {len(run.history.operations)} operations, {len(run.history.faults)} faults, no violation")


# The fault, the nodes that have it, and what it violates.
PLANTED = {
    "nonce-unchecked": ([1], {"replay"}),
    "once-forgotten": ([0, 1, 2], {"keyed"}),
    "acknowledged-before-commit": ([0, 1, 2], {"two-sessions", "replaced-session", "ended-session"}),
    "notify-lost": ([0, 1, 2], {"slow-change"}),
}


@needs.breakable
@pytest.mark.parametrize("fault", PLANTED if IS_LONG else ["nonce-unchecked", "acknowledged-before-commit"])
def test_a_planted_fault_is_found(fault, note):
    numbers, expected = PLANTED[fault]
    found = rules(chaos.Run(fault, 6, faults=[], options={number: ["--sabotage", fault] for number in numbers}))
    assert found & expected, found
    note(f"planted {fault}: found {', '.join(sorted(found))}")


def test_a_floor_that_is_not_raised_is_found(note):
    """Planted in Redis, so the program that ships runs: Redis forgets the requests, but not the markers by which nodes would notice."""
    run = chaos.Run("floor", 8, faults=[forget_unnoticed], note=lambda _: None)
    assert rules(run) == {"replay"}
    note(f"planted in Redis: {run.history.faults[0].shown}; found replay")
