"""A fourth node that is wrong, in more than 20 ways: it does not start, or is not ready, and the difference is named. The other three nodes
serve before, meanwhile and afterwards. They are started once, for all ways."""

import contextlib
import dataclasses
import json
import pathlib
import shutil
import threading

import pytest

from clock import Clock
from nodes import Cluster, Node, sent
from postgres import programs
from products import ROOT
from redis import RedisServer, is_installed
from waiting import until

pytestmark = [pytest.mark.skipif(programs() is None, reason="no postgres"), pytest.mark.skipif(not is_installed(), reason="no redis")]
DAYS = 91 * 86_400


@dataclasses.dataclass
class Place:
    """What a way is made from: the cluster, the server of its database, another Redis server, and a deployment of its own."""
    cluster: Cluster
    server: object
    redis: RedisServer
    other: Node

    @property
    def store(self) -> str:
        return self.cluster.nodes[0].environment["COUNTERSIGN_STORE"]


@pytest.fixture(scope="module")
def place(server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("wrong")
    with RedisServer() as redis, Cluster(folder, server.create("good"), (), (), (), accounts=1) as cluster:
        other = Node(folder / "other", server.create("other_deployment"))
        other.admin("app", "add", "demo")
        yield Place(cluster, server, redis, other)


@dataclasses.dataclass
class Way:
    """How the node differs, and what its error, or a report of the nodes, has of that."""
    named: str
    options: tuple = ()
    guard: str | None = "right"
    ahead: int = 0
    jumps: int = 0
    keys: str = "shared"
    store: str = "shared"


def setting(name: str, value: str) -> Way:
    return Way(f"--{name} is `{value}` here", (f"--{name}", value))


OTHER_VALUES = {
    "authority": "other.example", "prefix": "/other", "limit-kept-answer": "7", "limit-kept-keys": "777", "limit-kept-few-keys": "7",
    "limit-kept-floor": "700", "limit-kept-bytes": "7777777", "limit-kept-account-keys": "7", "limit-kept-account-bytes": "77777", "login-account": "60/1s",
    "login-address": "7/7s", "login-device": "7/7s", "login-solved": "7/7s", "login-pending": "77"}
WAYS = {
    "its clock is 91 days ahead": Way("the clock of Redis differs from this machine's by", ahead=DAYS),
    "its clock is 91 days behind": Way("the clock of Redis differs from this machine's by", ahead=-DAYS),
    "its clock jumps 91 days ahead": Way("clock", jumps=DAYS),
    "its clock jumps 91 days back": Way("clock", jumps=-DAYS),
    "its guard is a file": Way("--replay is `file", guard="file"),
    "its guard is in the database": Way("--replay is `postgres", guard="postgres"),
    "its guard is on another Redis server": Way("is not the server that node", guard="other"),
    "it has no guard": Way("--replay is `file", guard=None),
    "it has another master key": Way("master key", keys="other"),
    "its data folder is empty": Way("master key", keys="none"),
    "its data folder is of another deployment": Way("master key", keys="folder"),
    "its database is of another deployment": Way("master key", store="other"),
    "its database is an earlier copy": Way("put back to an earlier copy", store="earlier"),
    **{f"--{name} differs": setting(name, value) for name, value in OTHER_VALUES.items()},
}


def test_every_setting_of_the_deployment_has_a_way():
    rows = [line.split("|") for line in (ROOT / "docs/operate/settings.md").read_text().splitlines() if line.startswith("| `--")]
    marked = {row[1].strip(" `-") for row in rows if "deployment" in row[5]}
    assert marked == {*OTHER_VALUES, "replay"} and len(WAYS) >= 20


@contextlib.contextmanager
def fourth(place: Place, folder: pathlib.Path, way: Way):
    folder.mkdir()
    clock = Clock(folder / "clock") if way.ahead or way.jumps else None
    if clock:
        clock.jumps(way.ahead)
    first = place.cluster.nodes[0]
    guard = {"right": first.environment["COUNTERSIGN_REPLAY"], "other": place.redis.address}.get(way.guard, way.guard)
    stores = {"shared": place.store, "other": place.other.environment["COUNTERSIGN_STORE"]}
    if way.store == "earlier":
        stores["earlier"] = place.server.load(place.server.dump("good"), "earlier_copy")
        # A change that the copy lacks, and that the node has followed.
        first.admin("release", "add", "demo", "--platform", "ios", "--version", "7.0")
    node = Node(folder / "node", stores[way.store], *way.options, environment={"COUNTERSIGN_REPLAY": guard} if guard else {}, clock=clock)
    if way.keys == "folder":
        shutil.copytree(place.other.data, node.data)
    elif way.keys != "none":
        place.cluster.share_keys(node)
    if way.keys == "other":
        shutil.copy(place.other.data / "master.key", node.data / "master.key")
    if way.store == "earlier":
        shutil.copy(first.data / "followed-head", node.data)
    try:
        yield node
    finally:
        if node.process and node.process.poll() is None:
            node.stop()


class Callers:
    """Signs in and sends a signed request at each good node, one after the other, all the time."""

    def __init__(self, cluster: Cluster):
        self.cluster, self.rounds, self.refused = cluster, 0, []
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def __enter__(self) -> "Callers":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.is_over.set()
        self.thread.join()

    def run(self) -> None:
        while not self.is_over.is_set():
            for node in self.cluster.nodes:
                with node.connect() as line:
                    for request in (self.cluster.key.request(), self.cluster.login()):
                        answer = sent(line, request)
                        if answer.status != 200:
                            self.refused.append((node.port, answer.status, answer.body))
            self.rounds += 1

    def complete_a_round(self) -> None:
        """One that begins now. None of any round so far was refused."""
        after = self.rounds + 2
        until(lambda: self.rounds >= after or not self.thread.is_alive(), "the callers are kept waiting")
        assert self.refused == [] and self.thread.is_alive()


@pytest.fixture(scope="module")
def callers(place):
    with Callers(place.cluster) as running:
        yield running


@pytest.mark.parametrize("way", WAYS)
def test_a_fourth_node_that_is_wrong_harms_no_other(way, place, callers, tmp_path):
    cluster, first, jumps = place.cluster, place.cluster.nodes[0], WAYS[way].jumps
    with fourth(place, tmp_path / "fourth", WAYS[way]) as node:
        if jumps:
            node.start()
            until(lambda: node.causes() == [], lambda: node.asked("/ready"))
            node.clock.jumps(jumps)
            until(lambda: WAYS[way].named in node.causes(), lambda: node.asked("/ready"))
            assert node.asked("/ready")[0] == 503
            until(lambda: any(abs(each["clock_offset_ms"] - 1000 * jumps) < 60_000 and f":{node.port}" in each["name"]
                              for each in json.loads(first.admin("nodes", "--json").out)["nodes"]), lambda: first.admin("nodes", "--json").out)
        else:
            with pytest.raises(AssertionError, match="before listening"):
                node.start()
            assert WAYS[way].named in node.log_path.read_text()
        callers.complete_a_round()
    callers.complete_a_round()
    assert [each.causes() for each in cluster.nodes] == [[]] * 3
