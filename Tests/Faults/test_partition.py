"""One of three nodes is cut off from PostgreSQL and Redis. It refuses, at once what needs them and the rest once its lease is over; the other two
go on. Afterwards all three are ready, and none has admitted what another one had."""

import contextlib
import json

import pytest

from link import Link
from nodes import Cluster, sent
from postgres import programs
from redis import RedisServer, is_installed
from waiting import until

pytestmark = [pytest.mark.skipif(programs() is None, reason="no postgres"), pytest.mark.skipif(not is_installed(), reason="no redis")]


def test_a_node_that_is_cut_off(server, tmp_path):
    store = server.create("partition")
    with RedisServer() as redis, Link(server.port) as to_store, Link(redis.port) as to_guard:
        environments = {0: {"COUNTERSIGN_REPLAY": redis.address}, 1: {"COUNTERSIGN_REPLAY": redis.address}, 2: {
            "COUNTERSIGN_STORE": server.local_address("partition", to_store.port), "COUNTERSIGN_REPLAY": f"redis://127.0.0.1:{to_guard.port}"}}
        options = ("--outage", "grace:2")
        with Cluster(tmp_path, store, options, options, options, accounts=1, environments=environments) as cluster, contextlib.ExitStack() as stack:
            lines = [stack.enter_context(node.connect()) for node in cluster.nodes]
            cut_off, others = lines[2], lines[:2]
            seen = [cluster.key.request("POST", "/pay", b"1") for _ in lines]
            for line, request in zip(lines, seen, strict=True):
                sent(line, request, 200)
            tokens = [cluster.logged_in(line) for line in lines]
            for link in (to_store, to_guard):
                link.set("cut")
            assert to_store.touched > 0 and to_guard.touched > 0
            # Nothing is admitted without the guard, whatever the lease says.
            meanwhile = [cluster.key.request("POST", "/pay", b"1") for _ in range(4)]
            for request in [*seen, *meanwhile]:
                assert json.loads(sent(cut_off, request, 503).body)["code"] == "unavailable"
            # A change is acknowledged once the lease is over.
            sent(others[0], cluster.bearing(tokens[1], "POST", "/logout"), 200)
            for number, line in enumerate(others):
                assert [sent(line, request).status for request in seen] == [401] * 3
                assert sent(line, meanwhile[number]).status == sent(line, cluster.login()).status == 200
                assert sent(line, cluster.bearing(tokens[1])).status == 401
            assert [node.causes() for node in cluster.nodes[:2]] == [[], []]
            for token in tokens:
                assert sent(cut_off, cluster.bearing(token)).status == 503
            until(lambda: {"nodes", "replay"} <= set(cluster.nodes[2].causes()), lambda: cluster.nodes[2].causes())
            states = {each["state"] for each in json.loads(cluster.nodes[0].admin("nodes", "--json").out)["nodes"]}
            assert states == {"live", "lapsed"}

            for link in (to_store, to_guard):
                link.set("pass")
            until(lambda: [node.causes() for node in cluster.nodes] == [[]] * 3, lambda: [node.causes() for node in cluster.nodes])
            until(lambda: sent(cut_off, cluster.key.request()).status == 200, "it does not go on")
            for line in lines:
                # What was admitted is admitted nowhere else, and what the cut-off node refused is admitted once.
                assert [sent(line, request).status for request in [*seen, *meanwhile[:2]]] == [401] * 5
            for request in meanwhile[2:]:
                assert sorted(sent(line, request).status for line in lines) == [200, 401, 401]
            assert [sent(line, cluster.bearing(tokens[1])).status for line in lines] == [401] * 3
            assert [sent(line, cluster.bearing(tokens[0])).status for line in lines] == [200] * 3
