"""A gateway under strace, and administrators' commands beside it in the same trace, so that all they did has one order."""

import json
import os
import pathlib
import shlex
import typing

import disk
from gateway import BINARY, Gateway


class TracedGateway:
    """Runs until `end`; `orders` are commands that run one after the other, each of which confirms by its
    output."""

    def __init__(self, gateway: Gateway, folder: pathlib.Path):
        self.gateway, self.folder, self.trace = gateway, folder, folder / "trace"
        self.count = 0
        pipe = folder / "orders"
        os.mkfifo(pipe)
        loop = f'"$@" & while IFS= read -r line; do eval "$line" </dev/null; done <{shlex.quote(str(pipe))}; kill -TERM $!; wait $!'
        gateway.start(prefix=(*disk.traced(self.trace, []), "sh", "-c", loop, "sh"))
        self.pipe: typing.TextIO = open(pipe, "w", encoding="utf-8")

    def order(self, *words: object) -> str:
        """Has a command run; returns the file that it prints to."""
        answer = str(self.folder / f"order-{self.count}")
        self.count += 1
        command = shlex.join([BINARY, *map(str, words), "--data", str(self.gateway.data), "--json"])
        print(f"{command} >{shlex.quote(answer)} 2>&1", file=self.pipe, flush=True)
        return answer

    def end(self) -> None:
        """The gateway has stopped in good order, and every command was obeyed."""
        self.pipe.close()
        assert self.gateway.process.wait(120) == 0, self.gateway.log_path.read_text()[-800:]
        for number in range(self.count):
            json.loads((self.folder / f"order-{number}").read_text())
