"""SIGTERM drains: what is in flight is finished, nothing new begins, and the exit is 0."""

import signal
import socket
import threading
import time

from backend import Backend
from gateway import Gateway


def test_a_request_in_flight_is_finished(tmp_path):
    arrived, go = threading.Event(), threading.Event()

    def slow(seen, sock):
        arrived.set()
        assert go.wait(20)
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone")

    with Backend(slow) as backend:
        gateway = Gateway(tmp_path, "--upstream", backend.url).start()
        gateway.add_app("demo")
        key = gateway.add_release()
        idle = gateway.connect()
        with gateway.connect() as connection:
            connection.send(key.request())
            assert arrived.wait(5)
            gateway.process.send_signal(signal.SIGTERM)
            assert idle.is_closed(), "an idle connection is kept while it drains"
            deadline = time.monotonic() + 5
            while True:
                try:
                    socket.create_connection(("127.0.0.1", gateway.port), timeout=2).close()
                except ConnectionRefusedError:
                    break
                assert time.monotonic() < deadline, "it still accepts new connections"
                time.sleep(0.05)
            assert gateway.process.poll() is None, "it went before the request was finished"
            go.set()
            answer = connection.answer()
            assert (answer.status, answer.body) == (200, b"done")
            assert connection.is_closed()
        assert gateway.process.wait(10) == 0


def test_it_does_not_wait_for_ever(tmp_path):
    with Backend(lambda seen, sock: time.sleep(60)) as backend:
        gateway = Gateway(tmp_path, "--upstream", backend.url, "--deadline-drain", 1).start()
        gateway.add_app("demo")
        key = gateway.add_release()
        with gateway.connect() as connection:
            connection.send(key.request())
            backend.wait(1)
            began = time.monotonic()
            assert gateway.stop() == 0
            assert time.monotonic() - began < 8


def test_idle_it_goes_at_once(tmp_path):
    for sent in (signal.SIGTERM, signal.SIGINT):
        gateway = Gateway(tmp_path).start()
        began = time.monotonic()
        assert gateway.stop(sent) == 0
        assert time.monotonic() - began < 3
