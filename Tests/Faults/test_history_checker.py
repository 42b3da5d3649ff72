"""The checker of Tests/Support/history.py, on histories made by hand: it finds each kind of violation, and nothing in a clean history."""

import collections

import pytest

from history import LOST, OK, Fault, Final, History, Operation, violations


def operation(kind: str, subject: str, begun: float, ended: float, answer: str = OK, node: str = "node-1", **more: str) -> Operation:
    return Operation(kind, subject, node, begun, ended, answer, **more)


def login(subject: str, begun: float, ended: float, answer: str = OK) -> Operation:
    return operation("login", subject, begun, ended, answer, account="alice")


def history(*operations: Operation, forwarded: dict[str, int] | None = None, final: Final | None = None, faults: list[Fault] | None = None,
            quiet_until: float = 0) -> History:
    made = History(list(operations))
    made.forwarded = collections.Counter(forwarded or {})
    made.final, made.faults, made.quiet_until = final, faults or [], quiet_until
    return made


# The checker goes with the long form.
pytestmark = pytest.mark.full

ACCOUNT = operation("add-account", "bob", 0, 1, audit="account.add")
RELEASE = operation("add-release", "r_1", 0, 1)
RETIRED = operation("retire-release", "r_1", 2, 3)
ENDED = operation("end", "s_1", 2, 3)
REVOKED = operation("end", "s_1", 2, 3, audit="session.revoke")

CLEAN = {
    "one of three copies": history(
        operation("request", "a", 0, 1), operation("request", "a", 0, 1, "replayed"), operation("request", "a", 0, 1, LOST),
        forwarded={"a": 1}),
    "forwarded, and its answer lost": history(operation("request", "a", 0, 1, LOST), forwarded={"a": 1}),
    "refused everywhere": history(operation("request", "a", 0, 1, "unavailable")),
    "a keyed request answered three times": history(*[operation("keyed", "k", 0, 1)] * 3, forwarded={"k": 1}),
    "used before, during and after its end": history(
        operation("use", "s_1", 0, 1), operation("use", "s_1", 2.5, 4), operation("use", "s_1", 3.5, 4, "session-ended"), ENDED),
    "a use after its end that nobody saw accepted": history(ENDED, operation("use", "s_1", 3.1, 7, LOST, target="/session/1")),
    "an end that was not acknowledged": history(operation("end", "s_1", 2, 3, LOST), operation("use", "s_1", 4, 5)),
    "a login that was not acknowledged": history(login("s_1", 0, 1), login("", 2, 3, LOST), operation("use", "s_1", 4, 5)),
    "replaced": history(login("s_1", 0, 1), login("s_2", 2, 3), operation("use", "s_1", 2.9, 4), operation("use", "s_2", 3.5, 4)),
    "two logins at once, of which the first is left": history(
        login("s_1", 0, 2), login("s_2", 1, 3), operation("use", "s_1", 4, 5), operation("use", "s_2", 4, 5, "session-ended")),
    "two logins at once, one used until the other was acknowledged": history(
        login("s_1", 0, 2), login("s_2", 1, 3), operation("use", "s_1", 2.5, 5), operation("use", "s_2", 4, 5)),
    "a retired release": history(
        RELEASE, RETIRED, operation("use-release", "r_1", 2.9, 4), operation("use-release", "r_1", 4, 5, "update-required")),
    "all is there": history(
        ACCOUNT, RELEASE, RETIRED, REVOKED,
        final=Final({"bob"}, {"r_1": True}, {"s_2"}, {("account.add", "bob"), ("session.revoke", "s_1")})),
    "not acknowledged, and not there": history(operation("add-account", "bob", 0, 1, "unavailable"), final=Final()),
    "quick logouts": history(*[operation("end", f"s_{number}", number, number + 0.02) for number in range(20)], quiet_until=20),
    "slow logouts while others are there": history(
        *[operation("end", f"s_{number}", number, number + 0.5) for number in range(20)], quiet_until=5),
    "a recovery in time": history(faults=[Fault("kill", 0, 2, ready={"node-1": 5.0}, accepted={"node-1": 11.0})]),
    "a floor": history(faults=[Fault("flush", 0, 2, ready={"node-1": 5.0}, accepted={"node-1": 30.0}, refused_by_design=22)]),
}

VIOLATED = {
    "replay": history(*[operation("request", "a", 0, 1)] * 2, forwarded={"a": 2}),
    "replay, and the answers lost": history(*[operation("request", "a", 0, 1, LOST)] * 2, forwarded={"a": 2}),
    "keyed": history(operation("keyed", "k", 0, 1), operation("keyed", "k", 0, 1, LOST), forwarded={"k": 2}),
    "ended-session": history(ENDED, operation("use", "s_1", 3.1, 4, node="node-2")),
    "ended-session, and the answer lost": history(
        ENDED, operation("use", "s_1", 3.1, 7, LOST, target="/session/1"), forwarded={"/session/1": 1}),
    "replaced-session": history(login("s_1", 0, 1), login("s_2", 2, 3), operation("use", "s_1", 3.1, 4)),
    "two-sessions": history(login("s_1", 0, 2), login("s_2", 1, 3), operation("use", "s_1", 4, 5), operation("use", "s_2", 4, 5)),
    "retired-release": history(RELEASE, RETIRED, operation("use-release", "r_1", 3.1, 4)),
    "slow-change": history(*[operation("end", f"s_{number}", number, number + 0.5) for number in range(20)], quiet_until=20),
    "recovery": history(faults=[Fault("kill", 0, 2, ready={"node-1": 12.5})]),
    "recovery: never": history(faults=[Fault("kill", 0, 2, accepted={"node-1": None})]),
    "recovery: beyond the floor": history(faults=[Fault("flush", 0, 2, accepted={"node-1": 35.0}, refused_by_design=22)]),
    "lost: an account": history(operation("add-account", "bob", 0, 1), final=Final()),
    "lost: a release": history(RELEASE, final=Final()),
    "lost: a retirement": history(RETIRED, final=Final(releases={"r_1": False})),
    "lost: an end": history(ENDED, final=Final(sessions={"s_1"})),
    "lost: an audit entry": history(ACCOUNT, final=Final({"bob"})),
    "audit": history(final=Final(audit_findings=["record 3"])),
}


@pytest.mark.parametrize("name", CLEAN)
def test_clean(name):
    assert violations(CLEAN[name]) == []


@pytest.mark.parametrize("name", VIOLATED)
def test_violated(name):
    assert [violation.rule for violation in violations(VIOLATED[name])] == [name.split(":")[0].split(",")[0]]
