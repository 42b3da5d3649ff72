"""The reference pages that the program's own tables give: commands with their options, and settings."""
import html
import json
import os
import pathlib
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

from render import Document, Section


class ReferenceError(Exception):
    """The program did not answer as expected."""


def output(binary: pathlib.Path, *words: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COUNTERSIGN_")}
    done = subprocess.run([binary, *words], capture_output=True, text=True, timeout=60, check=False, env=environment)
    if done.returncode != 0:
        raise ReferenceError(f"{binary.name} {' '.join(words)}: exit {done.returncode}; expected 0: {done.stderr.strip()[:200]}")
    return done.stdout


def table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A table of cells that are HTML already."""
    head = "".join(f'<th scope="col">{html.escape(each)}</th>' for each in heads)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>\n" for row in rows)
    return ('<div class="wide" tabindex="0" role="region" aria-label="table"><table>'
            f"<thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table></div>")


def commands(binary: pathlib.Path, *, listed: str) -> Document:
    """Every command's help. `listed` is docs/commands.md, whose table the program's tests keep complete."""
    names = re.findall(r"^\| `([a-z][a-z -]*)` \|", listed, re.M)
    if len(names) < 20:
        raise ReferenceError(f"docs/commands.md: {len(names)} commands; expected a table of at least 20")
    with ThreadPoolExecutor(max_workers=4) as pool:
        helps = list(pool.map(lambda name: output(binary, *name.split(), "--help"), names))
    parts, sections = ["<h1>Commands and their options</h1>", "<p>The help of each command, as the program prints it.</p>"], []
    for name, text in zip(names, helps):
        anchor = name.replace(" ", "-")
        parts.append(f'<h2 id="{anchor}">countersign {name}</h2>\n<pre tabindex="0">{html.escape(text.strip())}</pre>')
        sections.append(Section(anchor=anchor, heading=f"countersign {name}", text=[text]))
    return Document(title="Commands and their options", html="\n".join(parts), sections=sections)


def settings(binary: pathlib.Path) -> Document:
    rows, text = [], []
    for each in json.loads(output(binary, "settings", "--json")):
        names = "<br>".join(f"<code>{html.escape(str(each[name]))}</code>" for name in ("option", "variable", "key") if each.get(name))
        rows.append((names, html.escape(each["meaning"]), html.escape(each["expected"]),
                     html.escape(str(each["default"] if each["default"] is not None else "–")), html.escape(each["applied_by"])))
        text.append(f"{each['option']} {each['variable']} {each['meaning']}")
    body = ("<h1>Settings of serve</h1>\n<p>Each setting as an option, an environment variable and a key of the settings file, "
            "as <code>countersign settings</code> lists them.</p>\n"
            + table(("names", "meaning", "expected", "default", "applied by"), rows))
    return Document(title="Settings of serve", html=body, sections=[Section(anchor="", heading="", text=text)])
