"""Faults of a cluster (chaos_cluster.py). Each is a function of the cluster, of randomness and of seconds, which injects it, waits and
heals it, and returns what shows that it happened. The function of a fault that lasts yields its seconds where it waits."""

import contextlib
import functools
import inspect
import os
import random
import re
import signal
import time
from collections.abc import Callable, Generator

from chaos_cluster import ChaosCluster, example, family, kill, state
from waiting import until

Injection = Callable[[ChaosCluster, random.Random, float], str]
Steps = Generator[float, None, str]
FAULTS: dict[str, Injection] = {}


def fault(name: str):
    def add(function):
        FAULTS[name] = lasting(function) if inspect.isgeneratorfunction(function) else function
        return function
    return add


def lasting(function) -> Injection:
    @functools.wraps(function)
    def inject(cluster: ChaosCluster, chance: random.Random, seconds: float) -> str:
        steps = function(cluster, chance, seconds)
        try:
            while True:
                time.sleep(next(steps))  # lint: a fault lasts
        except StopIteration as end:
            return end.value
    return inject


@fault("kill-node")
def kill_node(cluster: ChaosCluster, chance: random.Random, seconds: float) -> Steps:
    node = chance.choice(cluster.nodes)
    shown = kill(node.process)
    yield min(seconds, 3)
    node.start()
    return f"{node.name} {shown}"


def started(cluster: ChaosCluster) -> str:
    return cluster.sql(cluster.database, "SELECT pg_postmaster_start_time()")


@fault("restart-postgres")
def restart_postgres(cluster: ChaosCluster, chance: random.Random, seconds: float) -> Steps:
    before = started(cluster)
    shown = kill(cluster.processes[f"postgres-{cluster.database}"])
    yield min(seconds, 3)
    cluster.begin_postgres(cluster.database)
    assert started(cluster) != before
    return f"PostgreSQL ({cluster.database}) {shown}; started at {before}, and again at {started(cluster)}"


@fault("promote-standby")
def promote_standby(cluster: ChaosCluster, chance: random.Random, seconds: float) -> str:
    assert cluster.sql("standby", "SELECT pg_is_in_recovery()") == "t"
    shown = kill(cluster.processes["postgres-primary"])
    cluster.promote()
    cluster.database = "standby"
    for node in cluster.nodes:
        node.database.turn_to(cluster.postgres_ports["standby"])
    assert cluster.sql("standby", "SELECT pg_is_in_recovery()") == "f"
    return f"the primary {shown}; pg_is_in_recovery() of the standby was t and is f"


def info(cluster: ChaosCluster, name: str, section: str, field: str) -> str:
    found = re.search(rf"^{field}:(\S+)", cluster.redis(name, "INFO", section), re.M)
    return found[1] if found else ""


def other(name: str) -> str:
    return "replica" if name == "primary" else "primary"


def begin_redis(cluster: ChaosCluster, name: str, *options: str) -> None:
    cluster.begin(f"redis-{name}", "redis-server", cluster.folder / f"redis-{name}/redis.conf", *options)
    example.wait_until(lambda: "connected_slaves:1" in cluster.redis(cluster.guard, "INFO", "replication"), "Redis's replica", 20)


def replica_of(cluster: ChaosCluster, name: str) -> list[str]:
    """The roles that the servers have now, whatever their files say."""
    return ["--replicaof", "127.0.0.1", str(cluster.redis_ports[cluster.guard])] if name != cluster.guard else [
        "--replicaof", "no", "one"]


@fault("flush-redis")
def flush_redis(cluster: ChaosCluster, chance: random.Random, seconds: float) -> str:
    before = int(cluster.redis(cluster.guard, "DBSIZE"))
    done = cluster.redis(cluster.guard, "EVAL", "redis.call('FLUSHALL') return redis.call('DBSIZE')", "0")
    assert before > int(done) == 0, (before, done)
    return f"Redis had {before} keys, and {int(done)} after FLUSHALL"


@fault("restart-redis")
def restart_redis(cluster: ChaosCluster, chance: random.Random, seconds: float) -> Steps:
    before = info(cluster, cluster.guard, "server", "run_id")
    shown = kill(cluster.processes[f"redis-{cluster.guard}"])
    yield min(seconds, 3)
    begin_redis(cluster, cluster.guard, *replica_of(cluster, cluster.guard))
    after = info(cluster, cluster.guard, "server", "run_id")
    assert after and after != before
    return f"Redis ({cluster.guard}) {shown}; its run_id was {before[:8]} and is {after[:8]}"


@fault("promote-replica")
def promote_replica(cluster: ChaosCluster, chance: random.Random, seconds: float) -> str:
    former, guard = cluster.guard, other(cluster.guard)
    assert info(cluster, guard, "replication", "role") == "slave"
    shown = kill(cluster.processes[f"redis-{former}"])
    cluster.redis(guard, "REPLICAOF", "NO", "ONE")
    assert info(cluster, guard, "replication", "role") == "master"
    cluster.guard = guard
    begin_redis(cluster, former, *replica_of(cluster, former))
    return f"Redis ({former}) {shown}; the role of the {guard} was slave and is master"


@fault("stop")
def stop(cluster: ChaosCluster, chance: random.Random, seconds: float) -> Steps:
    """Any of the processes that are there; a primary is not after its standby was promoted."""
    name = chance.choice(sorted(name for name, process in cluster.processes.items() if process.poll() is None))
    pids = family(cluster.processes[name])
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    try:
        example.wait_until(lambda: state(pids[0]) == "T", f"{name} to stop", 5)
        yield seconds
        assert state(pids[0]) == "T"
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
    return f"{name} was in state T for {seconds:.1f} s"


def link_fault(mode: str) -> Injection:
    def break_link(cluster: ChaosCluster, chance: random.Random, seconds: float) -> Steps:
        node = chance.choice(cluster.nodes)
        what = chance.choice(["PostgreSQL", "Redis"]) if cluster.replay_server == "redis" else "PostgreSQL"
        links = [node.database] if what == "PostgreSQL" else node.redis
        for link in links:
            link.set(mode, chance.uniform(0.05, 1.0))
        yield max(seconds, 0.5)
        # A node that is away itself gives the link nothing to do until it is back.
        touched = until(lambda: sum(link.touched for link in links), f"{mode} of the link {node.name} to {what}")
        for link in links:
            link.set("pass")
        what_of = "connections" if mode in ("cut", "half-close") else "pieces"
        return f"{touched} {what_of} between {node.name} and {what} in {max(seconds, 0.5):.1f} s"
    return lasting(break_link)


LINKS = []
for mode in ("cut", "delay", "half-close", "hold"):
    LINKS.append(f"{mode}-link")
    FAULTS[LINKS[-1]] = link_fault(mode)

# After these, the replay guard's server may have forgotten requests, and the floor is raised. One that is stopped or unreachable
# forgets nothing, and neither does a PostgreSQL that is restarted.
LOSSES = {"redis": {"flush-redis", "restart-redis", "promote-replica"}, "postgres": {"promote-standby"}}


def faults_with(replay: str) -> list[str]:
    """The names of the faults that a cluster with this replay guard can suffer."""
    return [name for name in FAULTS if replay == "redis" or name not in LOSSES["redis"]]


def forget_unnoticed(cluster: ChaosCluster, chance: random.Random, seconds: float) -> str:
    """A planted fault: the entries go, the markers of the epoch stay, so that no node raises the floor."""
    before = int(cluster.redis(cluster.guard, "DBSIZE"))
    done = cluster.redis(cluster.guard, "EVAL", """
        local kept = redis.call('KEYS', '*:epoch')
        local values = redis.call('MGET', unpack(kept))
        redis.call('FLUSHALL')
        for index, name in ipairs(kept) do redis.call('SET', name, values[index]) end
        return redis.call('DBSIZE')""", "0")
    assert before > int(done) > 0, (before, done)
    return f"Redis had {before} keys, and {int(done)}, the markers, after FLUSHALL"
