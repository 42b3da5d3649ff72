"""A backend that counts in SQLite what it was told to do, and answers as a test wants it to: the payment behind the gateway."""

import json
import pathlib
import socket
import sqlite3
import threading

from backend import Backend, Seen
from waiting import HANGS
from wire import Closed


class Till(Backend):
    """Each POST moves the counter once, whatever its body is. While `answers` is clear, it moves and does not answer."""

    def __init__(self, path: pathlib.Path, *, port: int = 0, answer_bytes: int = 0):
        self.path, self.answer_bytes, self.cuts = path, answer_bytes, 0
        self.moved, self.answers = threading.Event(), threading.Event()
        self.answers.set()
        with sqlite3.connect(path) as book:
            book.execute("CREATE TABLE IF NOT EXISTS move (number INTEGER PRIMARY KEY, target TEXT, body BLOB)")
        super().__init__(self.pay, port=port)

    def pay(self, seen: Seen, sock: socket.socket) -> None:
        with sqlite3.connect(self.path) as book:
            number = book.execute("INSERT INTO move (target, body) VALUES (?, ?)", (seen.target, seen.body)).lastrowid
        self.moved.set()
        assert self.answers.wait(HANGS)
        if self.cuts > 0:
            self.cuts -= 1
            raise Closed("the backend went away after it had paid")
        body = json.dumps({"payment": number, "pad": "x" * self.answer_bytes}).encode()
        sock.sendall(b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nX-Payment: %d\r\nConnection: keep-alive\r\n"
                     b"Countersign-Replayed: forged\r\nContent-Length: %d\r\n\r\n" % (number, len(body)) + body)

    @property
    def moves(self) -> int:
        with sqlite3.connect(self.path) as book:
            return book.execute("SELECT count(*) FROM move").fetchone()[0]
