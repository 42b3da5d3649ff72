#!/usr/bin/env python3
"""The backend of the sample app: notes by account, in memory.

It listens on loopback only, and believes `Countersign-Account` because only programs on this machine reach it.
A backend that others can reach verifies the assertion (Examples/README.md).
"""

import argparse
import http.server
import json
import threading

LONGEST_BODY, LONGEST_NOTE, MOST_NOTES, MOST_ACCOUNTS = 16_384, 1_000, 200, 1_000


class Notes:
    """Bounded, and safe to use from several threads."""

    def __init__(self):
        self.accounts: dict[str, list[dict]] = {}
        self.lock = threading.Lock()

    def of(self, account: str) -> list[dict]:
        with self.lock:
            return list(self.accounts.get(account, []))

    def add(self, account: str, text: str) -> dict | None:
        """The new note; None where there is no room for another."""
        with self.lock:
            if account not in self.accounts and len(self.accounts) >= MOST_ACCOUNTS:
                return None
            notes = self.accounts.setdefault(account, [])
            if len(notes) >= MOST_NOTES:
                return None
            notes.append({"id": len(notes) + 1, "text": text})
            return notes[-1]


NOTES = Notes()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_GET(self):
        if self.path == "/hello":
            return self.answer(200, "hello")
        account = self.headers.get("Countersign-Account")
        if self.path != "/notes":
            return self.answer(404, {"error": "there are only /hello and /notes"})
        if account is None:
            return self.answer(403, {"error": "no account is signed in"})
        self.answer(200, NOTES.of(account))

    def do_POST(self):
        account = self.headers.get("Countersign-Account")
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > LONGEST_BODY:
            self.close_connection = True
            return self.answer(413, {"error": f"expected a body of at most {LONGEST_BODY} bytes"})
        body = self.rfile.read(int(length))
        if self.path != "/notes":
            return self.answer(404, {"error": "there are only /hello and /notes"})
        if account is None:
            return self.answer(403, {"error": "no account is signed in"})
        text = note_in(body)
        if text is None:
            return self.answer(422, {"error": f"expected a text of 1 to {LONGEST_NOTE} characters"})
        note = NOTES.add(account, text)
        if note is None:
            return self.answer(409, {"error": "there is no room for another note"})
        self.answer(201, note)

    def answer(self, status: int, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def note_in(body: bytes) -> str | None:
    """The text in a request for a new note; None where it is not one."""
    try:
        text = json.loads(body)["text"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return text if isinstance(text, str) and 1 <= len(text) <= LONGEST_NOTE else None


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True


def main() -> None:
    parser = argparse.ArgumentParser(description="Serves the backend of the sample app on 127.0.0.1.")
    parser.add_argument("--port", type=int, default=9000, help="0 picks one (default 9000)")
    with Server(("127.0.0.1", parser.parse_args().port), Handler) as server:
        print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
