"""`kill -9` of a gateway under mixed load: logins, logouts, revocations, new and locked accounts from another process, and signed
requests. What was acknowledged is there afterwards, no session comes back to life, no request is accepted twice, and the audit
log is whole."""

import dataclasses
import itertools
import json
import random
import signal
import threading
import typing

from bearer import add_app, asked, bearing, login
from gateway import Gateway, run
from waiting import until
from wire import Closed

ACCOUNTS = 4


@dataclasses.dataclass
class Acknowledged:
    """What the gateway and the commands have said yes to. Lists: appending to one is whole, whichever thread does it."""
    accounts: list[str] = dataclasses.field(default_factory=list)
    locked: list[str] = dataclasses.field(default_factory=list)
    # Tokens. Of one whose end was asked for and not answered nothing is known, and nothing is kept.
    live: list[str] = dataclasses.field(default_factory=list)
    ended: list[str] = dataclasses.field(default_factory=list)
    requests: list[bytes] = dataclasses.field(default_factory=list)


class MixedLoad:
    """Threads that go on until the gateway is gone."""

    def __init__(self, gateway: Gateway, names: typing.Iterator[str], seen: Acknowledged):
        self.gateway, self.names, self.seen = gateway, names, seen
        self.failures: list[str] = []
        # Why threads ended: the gateway is gone.
        self.ends: list[str] = []
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self.guarded, args=(life, number)) for number, life in
                        enumerate([self.sessions, self.sessions, self.requests, self.commands])]
        for thread in self.threads:
            thread.start()

    def guarded(self, life, number: int) -> None:
        try:
            life(number)
        except (Closed, OSError) as end:
            self.ends.append(f"{life.__name__}: {end!r}")
            self.stopping.set()
        except AssertionError as failure:
            self.failures.append(str(failure))

    def sessions(self, number: int) -> None:
        """Signs in, and of every three sessions ends two: one by itself, one by a command."""
        with self.gateway.connect(timeout=60) as connection:
            for turn in itertools.count():
                said, answer = asked(connection, login(self.gateway, f"user-{(number + turn) % ACCOUNTS}"))
                assert said == "accepted", answer
                made = json.loads(answer.body)
                token = made["token"]
                if turn % 3 == 0:
                    self.seen.live.append(token)
                    continue
                if turn % 3 == 1:
                    said, answer = asked(connection, bearing(self.gateway, token, "POST", "/logout"))
                    assert said == "accepted", answer
                else:
                    self.gateway.admin("session", "revoke", made["session"])
                self.seen.ended.append(token)

    def requests(self, _: int) -> None:
        with self.gateway.connect(timeout=60) as connection:
            while True:
                request = self.gateway.key.request("POST", "/order", b"amount=1")
                said, answer = asked(connection, request)
                assert said == "accepted", answer
                self.seen.requests.append(request)

    def commands(self, _: int) -> None:
        """Another process that writes to the same store; it is not killed, and so says yes to the end."""
        while not self.stopping.is_set():
            name = next(self.names)
            self.gateway.admin("account", "add", "demo", name)
            self.seen.accounts.append(name)
            self.gateway.admin("account", "lock", "demo", name)
            self.seen.locked.append(name)

    def until(self, ended: int, requests: int) -> None:
        """Waits until it is in full run."""
        def is_full() -> bool:
            assert not self.stopping.is_set() and not self.failures, (self.failures, self.ends)
            return len(self.seen.ended) >= ended and len(self.seen.requests) >= requests

        until(is_full, "there is no load to speak of")

    def join(self) -> None:
        self.stopping.set()
        for thread in self.threads:
            thread.join(60)
            assert not thread.is_alive()
        assert not self.failures, self.failures


def check(gateway: Gateway, seen: Acknowledged, sent: list[bytes]) -> None:
    """Whether all of it is so still; `sent` are the requests that were accepted lately."""
    listed = json.loads(gateway.admin("account", "list", "demo", "--limit", 100_000, "--json").out)["accounts"]
    states = {account["account"]: account["state"] for account in listed}
    assert set(seen.accounts) <= states.keys()
    assert {states[name] for name in seen.locked} <= {"locked"}
    with gateway.connect(timeout=60) as connection:
        lives = {asked(connection, bearing(gateway, token))[0] for token in seen.live}
        assert lives <= {"accepted"}, lives
        ends = {asked(connection, bearing(gateway, token))[0] for token in seen.ended}
        assert ends <= {"session-ended"}, ends
        assert {asked(connection, request)[0] for request in sent} == {"replayed"}
    verified = run("audit", "verify", "--data", gateway.data)
    assert verified.returncode == 0, verified.out + verified.err


def test_nothing_acknowledged_is_lost(tmp_path, is_long, note):
    kills, moments = 100 if is_long else 4, random.Random(4)
    # A kill loses the credit for a login in flight: after many kills the login limits would refuse all
    # users.
    # However many requests a connection carries while a command runs, only the kill ends it.
    gateway = Gateway(tmp_path, "--login-account", "100000/1s", "--login-address", "100000/1s",
                      "--limit-keepalive-requests", "1000000000").start()
    add_app(gateway, ACCOUNTS)
    seen, names = Acknowledged(), (f"made-{number}" for number in itertools.count())
    seen.accounts += [f"user-{number}" for number in range(ACCOUNTS)]
    replays = 0
    for round_ in range(kills):
        before = dataclasses.replace(seen, ended=[*seen.ended], requests=[*seen.requests])
        load = MixedLoad(gateway, names, seen)
        load.until(ended=len(before.ended) + 2, requests=len(before.requests) + 20)
        load.stopping.wait(moments.uniform(0, 1))
        assert not load.stopping.is_set(), load.failures
        assert gateway.stop(signal.SIGKILL) == -signal.SIGKILL, "it did not die of the kill"
        load.join()
        sent = seen.requests[len(before.requests):]
        gateway.start()
        check(gateway, seen, sent)
        replays += len(sent)
    assert gateway.stop() == 0
    note(f"{kills} kills by SIGKILL under mixed load: {len(seen.accounts)} accounts, {len(seen.live) + len(seen.ended)} "
         f"sessions of which {len(seen.ended)} ended, {replays:,} requests: none lost, back, or accepted twice")
