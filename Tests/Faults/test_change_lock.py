"""What script/chaos found, reduced: a change that waits longer than 5 s for the lock of changes, as while another node's link is slow, must
not keep its node from later ones."""

import subprocess

import pytest

import processes
from nodes import Cluster, sent
from postgres import Postgres, programs
from waiting import until

pytestmark = pytest.mark.skipif(programs() is None, reason="no postgres")


@pytest.fixture
def server():
    server = Postgres()
    yield server
    server.remove()


def test_a_node_goes_on_after_it_waited_for_the_lock(server, tmp_path):
    with Cluster(tmp_path, server.create("locked"), (), accounts=1) as cluster:
        with cluster.nodes[0].connect() as line:
            cluster.logged_in(line)
            holder = processes.start(
                [*server.as_user, str(server.bin / "psql"), "-h", str(server.folder), "-p", str(server.port), "-U", "postgres", "-d",
                 "locked", "-XAtq"],
                cwd=server.folder, text=True, bufsize=1, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            holder.stdin.write("BEGIN; SELECT 'held' FROM countersign.writing FOR UPDATE;\n")
            assert holder.stdout.readline() == "held\n"
            assert sent(line, cluster.login()).status == 503
            holder.communicate("COMMIT;\n")
            until(lambda: sent(line, cluster.login()).status == 200, "the node takes no changes any more")
