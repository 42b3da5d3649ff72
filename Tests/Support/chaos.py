"""Runs of several nodes over PostgreSQL and Redis with concurrent clients and faults, whose history is checked: `script/chaos`."""

import argparse
import concurrent.futures
import dataclasses
import json
import pathlib
import random
import secrets
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable

from chaos_clients import AHEAD, Administrator, Client, Keyed, Prober, Replayer, User
from chaos_cluster import ChaosCluster, ChaosNode
from chaos_faults import FAULTS, LINKS, LOSSES, Injection, faults_with
from history import OK, RECOVERY, Fault, Final, History, Violation, violations
from products import BINARY
from waiting import until

# How long such signatures are refused after a loss of the replay guard. Source: ReplayEpoch.floor, the window and 15 s, of which AHEAD is gained.
FLOOR = 60 + 15 - AHEAD + 2
# Logouts before the other clients begin, by whose time lost notifications are noticed.
QUIET_LOGOUTS = 12


class Run:
    """One cluster, its clients, and faults one after the other."""

    def __init__(self, seed: str, seconds: float, *, faults: list[str | Injection] | None = None, nodes: int = 3,
                 options: dict[int, list[str]] | None = None, note: Callable[[str], None] = print,
                 most_stop: float = 20, keeps_evidence: bool = False, replay: str = "redis"):
        self.seconds, self.faults, self.note, self.most_stop, self.keeps_evidence = seconds, faults, note, most_stop, keeps_evidence
        self.random = random.Random(seed)
        self.history, self.is_over = History(), threading.Event()
        pathlib.Path(BINARY).exists() or sys.exit(f"expected {BINARY}; COUNTERSIGN_BINARY names another one")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cs-chaos-", dir="/tmp"))
        # PostgreSQL's user goes through it.
        self.folder.chmod(0o755)
        self.cluster = ChaosCluster(self.folder, nodes, options or {}, replay)
        self.for_clients = (self.cluster, self.history, self.is_over, seed)
        # Until when signatures are refused by design.
        self.floor = 0.0

    def check(self) -> list[Violation]:
        """The whole run."""
        try:
            self.cluster.start()
            clients: list[Client] = [
                kind(*self.for_clients, number) for kind, number in ((Replayer, 0), (Keyed, 0), (User, 0), (User, 1), (Administrator, 0))]
            for name in ("user-0", "user-1", "prober"):
                self.cluster.add_account(name)
            self.prober = Prober(*self.for_clients)
            for number in range(QUIET_LOGOUTS):
                self.prober.logs_in_and_out(self.cluster.nodes[number % len(self.cluster.nodes)])
            self.history.quiet_until = time.monotonic()
            for client in clients:
                client.start()
            try:
                self.inject()
                # The clients see the deployment without a fault, too; `suffer` has waited until logins are accepted again.
                self.goes_on(100)
            finally:
                self.is_over.set()
                for client in clients:
                    client.join(70)
            for client in clients:
                if client.failure:
                    raise client.failure
                assert not client.is_alive(), client
            self.history.final = self.final()
            for seen in self.cluster.backend.seen:
                self.history.forwarded[seen.target] += 1
            found = violations(self.history)
        except BaseException:
            self.end(keep=self.keeps_evidence)
            raise
        self.end(keep=self.keeps_evidence and bool(found))
        return found

    def end(self, keep: bool) -> None:
        self.is_over.set()
        self.cluster.stop()
        if not keep:
            return shutil.rmtree(self.folder, ignore_errors=True)
        rows = [dataclasses.asdict(row) for row in [*self.history.faults, *self.history.operations]]
        (self.folder / "history.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return self.note(f"  the history and the logs are in {self.folder}")

    def inject(self) -> None:
        end, planned = time.monotonic() + self.seconds, list(self.faults) if self.faults is not None else None
        self.goes_on(50)
        has_promoted = False
        while planned or time.monotonic() < end:  # lint: a run lasts as long as its caller says
            if planned == []:
                self.goes_on(10)
                continue
            names = [name for name in faults_with(self.cluster.replay_server) if not (has_promoted and name == "promote-standby")]
            chosen = planned.pop(0) if planned else self.random.choice(names)
            has_promoted |= chosen == "promote-standby"
            # Short ones are as likely as long ones.
            seconds = 0.1 * (self.most_stop / 0.1) ** self.random.random()
            # A link breaks beside one fault in three.
            beside = self.random.choice(LINKS) if self.faults is None and chosen not in LINKS and self.random.random() < 0.33 else None
            happened = self.suffer(chosen, seconds, beside)
            # What is refused by design proves little more.
            end += happened.refused_by_design
            self.goes_on(self.random.randrange(30))

    def goes_on(self, count: int) -> None:
        """Waits until so many more operations were accepted; for more than the clients send in 60 s, ask several times."""
        def accepted() -> int:
            return sum(operation.answer == OK for operation in list(self.history.operations))

        least = accepted() + count
        until(lambda: accepted() >= least, "operations are accepted")

    def shown(self, chosen: str | Injection, seconds: float, beside: str | None) -> str:
        function = FAULTS[chosen] if isinstance(chosen, str) else chosen
        if beside is None:
            return function(self.cluster, self.random, seconds)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            shown = [pool.submit(each, self.cluster, self.random, seconds) for each in (FAULTS[beside], function)]
            return ", and ".join(future.result() for future in reversed(shown))

    def suffer(self, chosen: str | Injection, seconds: float, beside: str | None = None) -> Fault:
        name = chosen if isinstance(chosen, str) else chosen.__name__
        epoch = max(node.epoch() for node in self.cluster.nodes)
        happened = Fault(name + (f" beside {beside}" if beside else ""), time.monotonic())
        self.history.faults.append(happened)
        happened.shown = self.shown(chosen, seconds, beside)
        happened.healed = time.monotonic()
        names = [node.name for node in self.cluster.nodes]
        happened.ready, happened.accepted = dict.fromkeys(names), dict.fromkeys(names)

        def is_raised(node: ChaosNode) -> bool:
            return node.epoch() > epoch

        # A node is not back as long as it has not found the loss.
        self.watch(happened.ready, lambda node: node.is_ready() and (name not in LOSSES[self.cluster.replay_server] or is_raised(node)), happened.healed + 2 * RECOVERY)
        is_floor_raised = False
        for _ in range(2):
            if not is_floor_raised and any(map(is_raised, self.cluster.nodes)):
                is_floor_raised, self.floor = True, time.monotonic() + FLOOR
            happened.refused_by_design = max(0.0, self.floor - happened.healed)
            self.watch(happened.accepted, self.prober.logs_in, happened.healed + happened.refused_by_design + RECOVERY)
        slowest = [max((moment or float("inf")) - happened.healed for moment in times.values())
                   for times in (happened.ready, happened.accepted)]
        self.note(f"  {happened.name}: {happened.shown}; ready after {slowest[0]:.1f} s, logins after {slowest[1]:.1f} s"
                  + (", floor raised" if is_floor_raised else ""))
        return happened

    def watch(self, times: dict[str, float | None], is_back: Callable[[ChaosNode], bool], end: float) -> None:
        while None in times.values() and time.monotonic() < end:  # lint: a bound of the deployment, which it states itself
            for node in self.cluster.nodes:
                if times[node.name] is None and is_back(node):
                    times[node.name] = time.monotonic()
            self.prober.pause()

    def final(self) -> Final:
        first = self.cluster.nodes[0]

        def listed(*arguments: str) -> dict:
            return json.loads(first.command(*arguments, "--json"))

        records = listed("audit", "list", "--last", "100000")["records"]
        return Final(
            accounts={each["account"] for each in listed("account", "list", "demo", "--limit", "100000")["accounts"]},
            releases={each["key_id"]: each["retired_at"] is not None for each in listed("release", "list", "demo")["releases"]},
            sessions={each["session"] for each in listed("session", "list", "demo", "--limit", "100000")["sessions"]},
            audit={(record["action"], value) for record in records for value in record.values() if isinstance(value, str)},
            audit_findings=listed("audit", "verify")["findings"])

    def summary(self) -> str:
        counts = ", ".join(f"{kind} {count}" for kind, count in self.history.counts().items())
        return f"accepted of sent: {counts}; the backend saw {sum(self.history.forwarded.values())}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="script/chaos", description="Runs clusters with random faults, and checks their histories.")
    parser.add_argument("--runs", type=int, default=10, metavar="N", help="clusters, one after the other (10)")
    parser.add_argument("--seed", default=None, metavar="S",
                        help="of the first run; the others' follow from it (default: a new one, printed)")
    parser.add_argument("--seconds", type=float, default=40, metavar="T", help="of faults in a run (40)")
    parser.add_argument("--nodes", type=int, default=3, choices=range(2, 10), metavar="N", help="2 to 9 (3)")
    parser.add_argument("--replay", default="redis", choices=LOSSES, help="the replay guard's server (redis)")
    parser.add_argument("--faults", default=None, metavar="NAME,…", help=f"only these, in this order: {', '.join(FAULTS)}")
    options = parser.parse_args()
    faults = options.faults.split(",") if options.faults else None
    for name in faults or []:
        if name not in faults_with(options.replay):
            parser.error(f"--faults {name}: expected some of {', '.join(faults_with(options.replay))}")
    seed = options.seed or secrets.token_hex(4)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    violated = suffered = 0
    for number in range(options.runs):
        # A run is repeated by its own seed: --runs 1 --seed S.
        own = seed if number == 0 else f"{seed}.{number}"
        begun = time.monotonic()
        print(f"run {number + 1} of {options.runs}, seed {own}", flush=True)
        run = Run(own, options.seconds, faults=faults, nodes=options.nodes, keeps_evidence=True, replay=options.replay,
                  note=lambda text: print(text, flush=True))
        found = run.check()
        suffered += len(run.history.faults)
        print(f"  {run.summary()}; {time.monotonic() - begun:.0f} s", flush=True)
        for violation in found:
            print(f"  VIOLATION {violation}", flush=True)
        violated += bool(found)
    print(f"{options.runs} runs, {suffered} faults, {violated} runs with violations", flush=True)
    return 1 if violated else 0


if __name__ == "__main__":
    sys.exit(main())
