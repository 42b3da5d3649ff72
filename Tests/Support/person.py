"""A user of the command-line client: a profile in a separate folder, as on a separate machine."""

import json
import os
import pathlib
import secrets
import subprocess

import processes
from gateway import BINARY, Gateway, run

PASSWORD = "correct horse battery staple"


class Person:
    def __init__(self, gateway: Gateway, folder: pathlib.Path, name: str = "alice", *, url: str | None = None,
                 app: str = "demo", release: dict | None = None, knows_next: bool = False):
        self.gateway, self.folder, self.name = gateway, folder, name
        # How its commands run, if not as they are: under another clock.
        self.prefix: tuple[str, ...] = ()
        self.environment = gateway.clock.environment if gateway.clock else {}
        folder.mkdir(parents=True, exist_ok=True)
        self.profile = str(folder / "profile")
        self.release = release or json.loads(gateway.admin(
            "release", "add", app, "--platform", "ios", "--version", f"1.{secrets.token_hex(6)}", "--json").out)
        options = ["--ca", gateway.data / "tls/certificate.pem"] if gateway.is_tls else []
        if knows_next:
            options += ["--next-authority-key", self.release["next_authority_key"]]
        done = run("profile", "add", self.profile, "--url", url or gateway.url, "--key-id", self.release["key_id"],
                   "--secret-stdin", "--authority-key", self.release["authority_key"], *options,
                   stdin=self.release["secret"])
        assert done.returncode == 0, done.err

    def run(self, command: str, *arguments: object, stdin: str = "") -> subprocess.CompletedProcess:
        return run(command, "--profile", self.profile, *arguments, stdin=stdin, prefix=self.prefix,
                   environment=self.environment)

    def begin(self, *arguments: object) -> subprocess.Popen:
        """A call that goes on while others do."""
        return processes.start([BINARY, "request", "--profile", self.profile, *map(str, arguments)],
                               env=os.environ | self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)

    def signs_up(self, password: str = PASSWORD) -> "Person":
        done = self.run("signup", "--account", self.name, "--password-stdin", stdin=password + "\n")
        assert done.returncode == 0, done.err
        return self

    def logs_in(self, *options: object, password: str = PASSWORD) -> "Person":
        done = self.run("login", "--account", self.name, "--password-stdin", *options, stdin=password + "\n")
        assert done.returncode == 0, done.err
        return self

    def status(self, *options: object) -> dict:
        return json.loads(self.run("status", "--json", *options).out)

    def calls(self, *arguments: object) -> dict:
        """A call of the echo's, which must succeed."""
        done = self.run("request", *arguments)
        assert done.returncode == 0, done.err
        return json.loads(done.out)
