#!/usr/bin/env python3
"""Makes requests.json and answers.json: messages that two readers could take for different ones, and some
that all read alike.

Each case has a name, what it probes, and its bytes as a text of Latin-1. In a request, `<host>` stands for
the authority, `<signed>` for the field lines that sign what `sign` says (method, target, body), `<signed-lf>`
for the same with bare line feeds, `<a*500>` for so many times that letter. The signature does not cover the
fields that frame a message, so a reader who takes a case for a good request finds that it verifies, and only
the framing can refuse it. `/smuggled` is a target that nobody signed: a backend that sees it was made to.

Run it from anywhere: `python3 Vectors/framing/generate.py`. Its output is the same each time. With an
argument it writes into that folder.
"""

import json
import pathlib
import sys

import answers
import bodies
import case
import heads


def main() -> None:
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    bodies.make_requests()
    heads.make_requests()
    answers.make_answers()
    for name, cases in (("requests", case.requests), ("answers", answers.answers)):
        names = [one["name"] for one in cases]
        assert len(set(names)) == len(names), sorted(name for name in names if names.count(name) > 1)
        lines = ",\n".join(json.dumps(one, ensure_ascii=True) for one in cases)
        (folder / f"{name}.json").write_text(f"[\n{lines}\n]\n", encoding="ascii")
        print(f"{len(cases)} {name}")


if __name__ == "__main__":
    main()
