"""`python -m countersign_client --setup setup.json --state state.json
sign-up|log-in|call|refresh|update-pins|log-out|status`."""

import argparse
import getpass
import json
import pathlib
import sys

from .client import Client
from .errors import ClientError
from .setup import Setup


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(prog="countersign_client", description=__doc__)
    result.add_argument("--setup", type=pathlib.Path, required=True,
                        help="JSON: url, app, key_id, secret, authority_key, next_authority_key, pins")
    result.add_argument("--state", type=pathlib.Path, required=True,
                        help="what is kept between runs; made at first")
    result.add_argument("--password-stdin", action="store_true", help="read the password from standard input")
    commands = result.add_subparsers(dest="command", required=True)
    for name in ("sign-up", "log-in"):
        commands.add_parser(name).add_argument("account")
    call = commands.add_parser("call")
    call.add_argument("target", help="path and query")
    call.add_argument("-X", "--method", default="GET")
    call.add_argument("-d", "--data", default="", help="the body, sent as JSON")
    call.add_argument("--once", action="store_true",
                      help="with an idempotency key, sent again where no answer came")
    for name in ("refresh", "update-pins", "log-out", "status"):
        commands.add_parser(name)
    return result


def run(options: argparse.Namespace) -> None:
    client = Client(Setup.read(json.loads(options.setup.read_text())), options.state)
    if options.command in ("sign-up", "log-in"):
        password = sys.stdin.readline().rstrip("\n") if options.password_stdin else getpass.getpass()
        act = client.sign_up if options.command == "sign-up" else client.log_in
        act(options.account, password)
    elif options.command == "call":
        body = options.data.encode()
        fields = {"content-type": "application/json"} if body else {}
        answer = client.call(options.method, options.target, fields, body, options.once)
        sys.stdout.buffer.write(answer.body + b"\n")
        if answer.status >= 400:
            raise ClientError("status", str(answer.status))
    elif options.command == "refresh":
        client.session.renew()
    elif options.command == "update-pins":
        client.update_pins()
    elif options.command == "log-out":
        client.log_out()
    if options.command != "call":
        print(json.dumps(client.status()))


def main() -> int:
    try:
        run(parser().parse_args())
    except EOFError:
        print("countersign_client: no password; --password-stdin reads one from standard input", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except (ClientError, OSError, ValueError) as error:
        print(f"countersign_client: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
