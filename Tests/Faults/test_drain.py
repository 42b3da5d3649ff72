"""SIGTERM drains: what is in flight is finished, nothing new begins, and the exit is 0."""

import signal
import threading

from backend import Backend
from gateway import Gateway
from ports import listens
from waiting import until


def test_a_request_in_flight_is_finished(tmp_path):
    arrived, go = threading.Event(), threading.Event()

    def slow(seen, sock):
        arrived.set()
        assert go.wait(60)
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone")

    with Backend(slow) as backend:
        gateway = Gateway(tmp_path, "--upstream", backend.url).start()
        gateway.add_app("demo")
        key = gateway.add_release()
        idle = gateway.connect()
        with gateway.connect() as connection:
            connection.send(key.request())
            assert arrived.wait(60)
            gateway.process.send_signal(signal.SIGTERM)
            assert idle.is_closed(), "an idle connection is kept while it drains"
            until(lambda: not listens(gateway.port, gateway.process), "it still accepts new connections")
            assert gateway.process.poll() is None, "it went before the request was finished"
            go.set()
            answer = connection.answer()
            assert (answer.status, answer.body) == (200, b"done")
            assert connection.is_closed()
        assert gateway.process.wait(60) == 0


def test_it_does_not_wait_for_ever(tmp_path):
    with Backend(lambda seen, sock: sock.recv(1)) as backend:
        gateway = Gateway(tmp_path, "--upstream", backend.url, "--deadline-drain", 1).start()
        gateway.add_app("demo")
        key = gateway.add_release()
        with gateway.connect() as connection:
            connection.send(key.request())
            backend.wait(1)
            assert gateway.stop() == 0


def test_idle_it_goes_at_once(tmp_path):
    for sent in (signal.SIGTERM, signal.SIGINT):
        gateway = Gateway(tmp_path).start()
        assert gateway.stop(sent) == 0
