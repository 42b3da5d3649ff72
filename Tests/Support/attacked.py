"""A gateway under attack: set up with the app, keys, policy and limits that the attack targets, and
measured from an ordinary client's side during the attack."""

import pathlib
import signal
import subprocess
import time
from dataclasses import dataclass

from attackers import Attack, Attackers, Probe, Target, ordinary_requests
from gateway import Gateway
from ports import reserve_port
from signing import PairKey
from waiting import until

RATE, ADMIN_RATE = 200, 20
# Seconds in which SIGTERM must end the server; requests in flight are given two.
MOST_STOP = 8.0


@dataclass(frozen=True)
class Places:
    """Commands that run the server, the attackers and the ordinary client, such as `taskset -c 0`."""

    server: tuple[str, ...] = ()
    attackers: tuple[str, ...] = ()
    client: tuple[str, ...] = ()


class AttackedGateway(Gateway):
    """One loop, so that an attack that blocks the loop blocks the server. `prefix` is a command that runs
    it, such as `taskset`."""

    def __init__(self, folder: pathlib.Path, attack: Attack, is_tls: bool, *options: object, prefix: tuple[str, ...] = ()):
        self.admin_port = reserve_port()
        super().__init__(
            folder,
            "--workers",
            1,
            "--admin",
            f"127.0.0.1:{self.admin_port}",
            "--tls",
            "auto" if is_tls else "off",
            "--deadline-drain",
            2,
            *attack.options,
            *options,
        )
        limits = ("prlimit", f"--nofile={attack.descriptors}:{attack.descriptors}") if attack.descriptors else ()
        self.attack, self.wrapper = attack, (*prefix, *limits)

    def command(self, *options: object) -> list[str]:
        return [*self.wrapper, *super().command(*options)]

    def target(self) -> Target:
        """Creates the releases and accounts that an attacker may know, in the running server."""
        self.add_app("demo", **self.attack.policy)
        target = Target(self.port, self.is_tls, self.add_release())
        if "form-md5" in self.attack.policy.get("schemes", ""):
            self.admin(
                "release",
                "add",
                "demo",
                "--platform",
                "ios",
                "--version",
                "0.9",
                "--scheme",
                "form-md5",
                "--key-id",
                "known_app",
                "--secret",
                "secret",
            )
            target.form_key = "known_app"
        if name := self.attack.pair:
            pair = PairKey.make(name, f"pair-{name}", target.authority)
            path = self.folder / "public.pem"
            path.write_bytes(pair.public_pem())
            self.admin(
                "release",
                "add",
                "demo",
                "--platform",
                "partner",
                "--version",
                "1.0",
                "--algorithm",
                name,
                "--public-key",
                path,
                "--key-id",
                pair.key_id,
            )
            target.pairs[name] = pair
        return target

    def end(self, wait: float) -> int | None:
        """Asks it to stop; its exit status, or none where it took longer than `wait` seconds."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(wait)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None
        finally:
            self.process.stdout.close()


def measure(attack: Attack, gateway: AttackedGateway, seconds: int, folder: pathlib.Path, places: Places = Places()) -> dict:
    """Measures the service that the ordinary client and the administrators get during the attack, and the
    attack's cost. The server is told to stop before the attack ends."""
    target, before, log_before = gateway.target(), gateway.rss(), gateway.log_path.stat().st_size
    held = gateway.sockets()
    requests = ordinary_requests(target.pairs.get(attack.pair, target.key), RATE * seconds)
    health = [b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"] * ADMIN_RATE * seconds
    patience, row = seconds * 2 + 60, {"attack": attack.name, "transport": "tls" if gateway.is_tls else "plain"}
    with Attackers(attack, target, folder, seconds * 3 + 60, places.attackers) as attackers:
        until(lambda: gateway.sockets() > held, "the attack")
        admin = Probe(
            gateway.admin_port,
            False,
            health,
            folder / "admin",
            ADMIN_RATE,
            "--connections",
            1,
            prefix=places.client,
            address="127.0.0.1",
        )
        probe = Probe(target.port, gateway.is_tls, requests, folder / "probe", RATE, prefix=places.client)
        row |= {"gateway": probe.result(patience), "admin": admin.result(patience), "died": gateway.process.poll()}
        row |= {
            "grown_mib": 0.0 if row["died"] is not None else round((gateway.most_rss() - before) / 2**20, 1),
            "log_bytes": gateway.log_path.stat().st_size - log_before,
        }
        began = time.monotonic()
        row["exit"] = gateway.end(MOST_STOP)
        row["stop_seconds"] = round(time.monotonic() - began, 2)
        row["attackers"] = attackers.stop()
    return row


def failures(row: dict, attack: Attack) -> list[str]:
    """Asserts what must hold on any machine, however busy; the times are judged elsewhere."""
    ours, did = row["gateway"], row["attackers"]
    found = [f"the attack did not run: {name} {did[name]}" for name, least in attack.least.items() if did[name] < least]
    if ours["errors"]:
        found.append(f"{ours['errors']} of {ours['requests']} failed: {ours['first_errors'][0]}")
    if row["admin"]["errors"]:
        found.append(f"/health failed {row['admin']['errors']} times")
    if row["grown_mib"] > attack.most_memory_mib:
        found.append(f"{row['grown_mib']} MiB more memory")
    # Log lines of the ordinary client, whose requests are verified, are never left out.
    if row["log_bytes"] > attack.most_log_bytes + 400 * (ours["requests"] + did["succeeded"]):
        found.append(f"the log grew by {row['log_bytes'] / 2**20:.1f} MiB")
    if row["died"] is not None:
        found.append(f"the server ended by itself: {row['died']}")
    elif row["exit"] != 0:
        found.append(f"SIGTERM during the attack: {'no end' if row['exit'] is None else row['exit']}")
    return found
