"""A history of several nodes: what concurrent clients asked, what was answered and when; and a checker, which is a pure function of it.
Times are of one monotonic clock. An answer counts from the moment that its client had it, a request from the moment before it was sent."""

import collections
import dataclasses
import itertools
import threading
import time

OK = "ok"
# No answer: the connection ended, or the time-out passed. The operation may have been done, or may yet be.
LOST = "lost"
# Seconds until each node is ready again, and accepts a login, once the cause is gone.
RECOVERY = 10.0
# Seconds until a logout is acknowledged, the median, while no other client and no fault is there. It takes some 20 ms, and 280 ms if
# neither of two other nodes is notified, which look every 400 ms of themselves.
QUIET = 0.15
# How many changes it takes to judge that.
ENOUGH = 8


@dataclasses.dataclass(frozen=True)
class Operation:
    """`kind` and `subject`: `request` ID, `keyed` KEY, `login` SESSION (with its account; no session if it was refused), `use` SESSION,
    `end` SESSION (by logout or revocation), `add-account` NAME, `add-release` KEY_ID, `retire-release` KEY_ID, `use-release` KEY_ID."""
    kind: str
    subject: str
    node: str
    begun: float
    # When the answer was there; without one, when the client gave up.
    ended: float
    # OK, LOST or a refusal's code.
    answer: str
    account: str = ""
    # The action that the audit log must show, with this subject, once this is acknowledged.
    audit: str = ""
    # What the backend sees of it, if that is not the subject: an answer that its client did not wait for counts all the same.
    target: str = ""


@dataclasses.dataclass
class Fault:
    name: str
    begun: float
    # When its cause was gone.
    healed: float = 0
    # What shows that it happened.
    shown: str = ""
    # Of each node: when it was ready again, and when it accepted a login again; None if it has not.
    ready: dict[str, float | None] = dataclasses.field(default_factory=dict)
    accepted: dict[str, float | None] = dataclasses.field(default_factory=dict)
    # Seconds for which signatures are refused by design, after Redis may have forgotten some: the floor.
    refused_by_design: float = 0


@dataclasses.dataclass
class Final:
    """What the deployment has at the end, when all nodes are ready."""
    accounts: set[str] = dataclasses.field(default_factory=set)
    # Whether it is retired.
    releases: dict[str, bool] = dataclasses.field(default_factory=dict)
    # Those that live.
    sessions: set[str] = dataclasses.field(default_factory=set)
    # Action and subject.
    audit: set[tuple[str, str]] = dataclasses.field(default_factory=set)
    audit_findings: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Violation:
    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.text}"


class History:
    """Clients record from several threads."""

    def __init__(self, operations: list[Operation] | None = None):
        self.operations: list[Operation] = operations or []
        self.faults: list[Fault] = []
        # How often the backend has seen each `request`, `keyed` and target, by its own record.
        self.forwarded: collections.Counter[str] = collections.Counter()
        self.final: Final | None = None
        # Until when there was one client, and no fault.
        self.quiet_until = 0.0
        self.lock = threading.Lock()

    def add(self, kind: str, subject: str, node: str, begun: float, answer: str, **more: str) -> Operation:
        operation = Operation(kind, subject, node, begun, time.monotonic(), answer, **more)
        with self.lock:
            self.operations.append(operation)
        return operation

    def of(self, *kinds: str) -> list[Operation]:
        return [operation for operation in self.operations if operation.kind in kinds]

    def accepted(self, *kinds: str) -> list[Operation]:
        return [operation for operation in self.of(*kinds) if operation.answer == OK or self.forwarded[operation.target]]

    def counts(self) -> dict[str, str]:
        """Of each kind: how many were accepted, of how many."""
        done = collections.Counter(operation.kind for operation in self.operations if operation.answer == OK)
        every = collections.Counter(operation.kind for operation in self.operations)
        return {kind: f"{done[kind]}/{every[kind]}" for kind in sorted(every)}


def violations(history: History) -> list[Violation]:
    found = [*forwarded_twice(history), *ended_alive(history), *two_of_one_account(history), *retired_accepted(history),
             *slow_changes(history), *slow_recoveries(history)]
    return found + (lost(history) if history.final else [])


def forwarded_twice(history: History) -> list[Violation]:
    """The backend's record counts, and what clients were told besides: of copies of one request, one is accepted."""
    accepted = collections.Counter(operation.subject for operation in history.of("request") if operation.answer == OK)
    found = []
    for name in sorted({operation.subject for operation in history.of("request")}):
        if max(history.forwarded[name], accepted[name]) > 1:
            found.append(Violation("replay", f"{name} was forwarded {history.forwarded[name]} times and accepted {accepted[name]} times"))
    for name in sorted({operation.subject for operation in history.of("keyed")}):
        if history.forwarded[name] > 1:
            found.append(Violation("keyed", f"{name} was forwarded {history.forwarded[name]} times"))
    return found


def ended_alive(history: History) -> list[Violation]:
    """A session that is accepted in a request which began after the end was acknowledged."""
    ends: dict[str, Operation] = {}
    for operation in history.of("end"):
        if operation.answer == OK and (operation.subject not in ends or operation.ended < ends[operation.subject].ended):
            ends[operation.subject] = operation
    return [Violation("ended-session", f"{use.subject} was accepted at {use.node} {since(ends[use.subject].ended, use)} after its end was "
                      f"acknowledged at {ends[use.subject].node}")
            for use in history.accepted("use") if use.subject in ends and use.begun > ends[use.subject].ended]


def two_of_one_account(history: History) -> list[Violation]:
    """Under `single`, a login ends the sessions that were opened before it began; of two at once, one is left. An ended one stays so."""
    logins, uses, found = collections.defaultdict(list), collections.defaultdict(list), []
    for operation in history.of("login"):
        if operation.answer == OK:
            logins[operation.account].append(operation)
    for operation in history.accepted("use"):
        uses[operation.subject].append(operation)
    for account, opened in logins.items():
        for first, second in itertools.permutations(opened, 2):
            both = max(first.ended, second.ended)
            late = next((use for use in uses[first.subject] if use.begun > both), None)
            if late and first.ended < second.begun:
                found.append(Violation("replaced-session", f"{first.subject} of {account} was accepted at {late.node} {since(both, late)} "
                                       f"after {second.subject} had replaced it"))
            elif late and first.begun <= second.begun <= first.ended and any(use.begun > both for use in uses[second.subject]):
                found.append(Violation(
                    "two-sessions", f"{first.subject} and {second.subject} of {account} were accepted after both logins"))
    return found


def retired_accepted(history: History) -> list[Violation]:
    ends = {operation.subject: operation for operation in history.of("retire-release") if operation.answer == OK}
    return [Violation("retired-release", f"{use.subject} was accepted at {use.node} {since(ends[use.subject].ended, use)} after its "
                      f"retirement was acknowledged at {ends[use.subject].node}")
            for use in history.accepted("use-release") if use.subject in ends and use.begun > ends[use.subject].ended]


def since(moment: float, use: Operation) -> str:
    return f"{1000 * (use.begun - moment):.0f} ms"


def slow_changes(history: History) -> list[Violation]:
    """A change that is acknowledged late has waited for a node that was not told of it: nodes look by themselves only once in a while."""
    taken = sorted(end.ended - end.begun for end in history.of("end") if end.answer == OK and end.ended <= history.quiet_until)
    median = taken[len(taken) // 2] if len(taken) >= ENOUGH else 0
    if median <= QUIET:
        return []
    return [Violation("slow-change", f"half of {len(taken)} logouts took over {1000 * median:.0f} ms, and no other client was there; the "
                      f"bound is {1000 * QUIET:.0f} ms")]


def slow_recoveries(history: History) -> list[Violation]:
    found = []
    for fault in history.faults:
        longer = RECOVERY + fault.refused_by_design
        for what, times, bound in (("ready", fault.ready, RECOVERY), ("accepting logins", fault.accepted, longer)):
            for node, moment in times.items():
                took = None if moment is None else moment - fault.healed
                if took is None or took > bound:
                    found.append(Violation("recovery", f"{node} was {what} {'never' if took is None else f'{took:.1f} s'} after "
                                           f"{fault.name}; the bound is {bound:.0f} s"))
    return found


def lost(history: History) -> list[Violation]:
    """What was acknowledged and is not there at the end."""
    final, found = history.final, []

    def expect(is_there: bool, operation: Operation, what: str) -> None:
        if not is_there:
            found.append(Violation("lost", f"{operation.kind} {operation.subject}, acknowledged at {operation.node}: {what}"))

    for operation in history.operations:
        if operation.answer != OK:
            continue
        if operation.kind == "add-account":
            expect(operation.subject in final.accounts, operation, "there is no such account")
        elif operation.kind == "add-release":
            expect(operation.subject in final.releases, operation, "there is no such release")
        elif operation.kind == "retire-release":
            expect(final.releases.get(operation.subject, False), operation, "the release is not retired")
        elif operation.kind == "end":
            expect(operation.subject not in final.sessions, operation, "the session lives")
        if operation.audit:
            expect((operation.audit, operation.subject) in final.audit, operation, f"no {operation.audit} in the audit log")
    return found + [Violation("audit", f"audit verify finds {finding}") for finding in final.audit_findings]
