"""Builds the documentation site: `build.py [--binary FILE] [--sdk FOLDER] OUTPUT`, called by script/docs.

Without a binary, or with one that has no command `openapi`, the pages made from it say that they were left out;
so does the page of the SDK without docc's site. Of the rest, the output has no times and no paths of the machine, so
two builds are equal; docc may order its own data differently. Every problem is printed with file and line, and nothing is written over an existing site then."""
import argparse
import html
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

import openapi
import reference
import shell
import verify
from render import Document, Renderer, Section, Source, parse

HERE = pathlib.Path(__file__).resolve().parent
ARTICLES = "Sources/SDK/Countersign.docc/"
ASSETS = ("site.css", "keys.js", "search.js")


def place_of(path: str) -> str:
    return "about.html" if path == "README.md" else re.sub(r"(README)?\.md$", lambda found: "index.html" if found[1] else ".html", path)


class Site:
    """The pages of a site, before they are written."""

    def __init__(self, *, root: pathlib.Path, binary: pathlib.Path | None, sdk: pathlib.Path | None):
        self.root, self.binary, self.sdk = root, binary, sdk
        self.problems: list[str] = []
        listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=root, capture_output=True, text=True, check=True)
        self.files = sorted(line for line in set(listed.stdout.splitlines()) if (root / line).is_file())
        names = [name for name in self.files if name.endswith(".md") and not name.startswith(ARTICLES)]
        self.sources: dict[str, Source] = {name: parse(name, (root / name).read_text()) for name in names}
        self.places = {name: place_of(name) for name in names}
        if sdk:
            for name in self.files:
                if name.startswith(ARTICLES) and name.endswith(".md"):
                    article = pathlib.Path(name).stem.lower()
                    way = "" if article == "countersign" else f"/{article}"
                    self.places[name] = f"sdk/documentation/countersign{way}/"
        # By place: the page, and the file that it is made from.
        self.documents: dict[str, tuple[Document, str]] = {}
        self.copies: dict[str, pathlib.Path] = {}

    def make(self) -> None:
        renderer = Renderer(root=self.root, sources=self.sources, places=self.places, problems=self.problems)
        for name, source in self.sources.items():
            place = self.places[name]
            self.documents[place] = (renderer.render(source, up=shell.up(place)), name)
        self.add_references()
        for name, place in sorted(self.places.items()):
            if name not in self.sources and not place.startswith("sdk/"):
                self.add_file(name, place=place)

    def add_references(self) -> None:
        commands = settings = "Left out: the site was built without the program."
        apis = dict.fromkeys(("admin", "authority"), commands)
        made: dict[str, Document] = {}
        if self.binary:
            listed = (self.root / "docs/commands.md").read_text()
            made["commands"] = reference.commands(self.binary, listed=listed)
            made["settings"] = reference.settings(self.binary)
            for api in apis:
                if re.search(r"^\| `openapi` \|", listed, re.M):
                    made[f"api-{api}"] = openapi.document(json.loads(reference.output(self.binary, "openapi", api)))
                else:
                    apis[api] = "Left out: the program has no command 'openapi'."
        titles = {"commands": ("Commands and their options", commands), "settings": ("Settings of serve", settings),
                  "api-admin": ("Admin API", apis["admin"]), "api-authority": ("API of the authority", apis["authority"])}
        for name, (title, note) in titles.items():
            self.documents[f"reference/{name}.html"] = (made.get(name) or self.note(title, text=html.escape(note)), "")
        text = "Left out: the site was built without docc."
        if self.sdk:
            text = ('<a href="../sdk/documentation/countersign/">The reference and the articles of the SDK</a> are made by docc. '
                    "They need JavaScript and a web server at the root of the site: <code>script/docs --serve</code>.")
        self.documents["reference/sdk.html"] = (self.note("SDK reference", text=text), "")

    def note(self, title: str, *, text: str) -> Document:
        return Document(title=title, html=f"<h1>{title}</h1>\n<p>{text}</p>", sections=[Section(anchor="", heading="", text=[title])])

    def add_file(self, name: str, *, place: str) -> None:
        """A page for a file or a folder that some page links to."""
        path = self.root / name
        if path.suffix == ".png":
            self.copies[place] = path
            return
        if path.is_dir():
            inside = sorted(each for each in self.files if each.startswith(f"{name}/"))
            text = "\n".join(inside)
        elif name in self.files:
            text = path.read_text()
        else:
            self.problems.append(f"{name}: linked, and not a file of the repository")
            return
        body = f'<h1>{html.escape(name)}</h1>\n<pre tabindex="0">{html.escape(text)}</pre>'
        self.documents[place] = (Document(title=name, html=body, sections=[]), name)

    def groups(self) -> list[shell.Group]:
        readers = tomllib.loads((HERE / "readers.toml").read_text())["reader"]
        named = {page for reader in readers for page in reader["pages"]}
        groups = []
        for reader in readers:
            places = []
            for page in reader["pages"]:
                if page.endswith("/"):
                    places += [self.places[name] for name in sorted(self.sources) if name.startswith(page) and name not in named]
                else:
                    places.append(self.places.get(page, page))
            for place in places:
                if place not in self.documents:
                    self.problems.append(f"docs/site/readers.toml: {place}: no such page")
            entries = tuple(shell.Entry(title=self.documents[place][0].title, place=place) for place in places if place in self.documents)
            groups.append(shell.Group(name=reader["name"], purpose=reader["purpose"], entries=entries))
        reached = {entry.place for group in groups for entry in group.entries}
        for name in self.sources:
            if self.places[name] not in reached:
                self.problems.append(f"{name}: in no list of docs/site/readers.toml")
        return groups

    def write(self, output: pathlib.Path) -> None:
        groups = self.groups()
        cards = "".join(
            f"<li><h2>{html.escape(group.name)}</h2><p>{html.escape(group.purpose)}</p><ul>"
            + "".join(f'<li><a href="{entry.place}">{html.escape(entry.title)}</a></li>' for entry in group.entries[:5])
            + "</ul></li>" for group in groups)
        body = f'<h1>Countersign documentation</h1>\n<ul class="cards">{cards}</ul>'
        files = {"index.html": shell.page(title="Documentation", place="index.html", body=body, groups=groups)}
        search = ('<h1>Search</h1>\n<noscript><p>Search needs JavaScript; all other pages work without it.</p></noscript>\n'
                  '<p id="state" role="status"></p>\n<ol id="results"></ol>')
        files["search.html"] = shell.page(title="Search", place="search.html", body=search, groups=groups, scripts=("index.js", "search.js"))
        rows = []
        for place, (document, source) in sorted(self.documents.items()):
            files[place] = shell.page(title=document.title, place=place, body=document.html, groups=groups, source=source)
            rows += [[place, document.title, each.anchor, each.heading, re.sub(r"\s+", " ", " ".join(each.text)).strip()]
                     for each in document.sections if each.heading or each.text]
        files["assets/index.js"] = f"window.countersignIndex = {json.dumps(rows, ensure_ascii=False, separators=(',', ':'))};\n"
        for place, text in files.items():
            (output / place).parent.mkdir(parents=True, exist_ok=True)
            (output / place).write_text(text)
        for place, path in {**{f"assets/{name}": HERE / name for name in ASSETS}, **self.copies}.items():
            (output / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, output / place)
        if self.sdk:
            add_sdk(self.sdk, output=output / "sdk")


def add_sdk(sdk: pathlib.Path, *, output: pathlib.Path) -> None:
    """Copies docc's site to /sdk/, with a link back on each page."""
    shutil.copytree(sdk, output)
    # docc writes the members of its objects in another order each time.
    for path in output.rglob("*.json"):
        path.write_text(json.dumps(json.loads(path.read_text()), sort_keys=True, ensure_ascii=False, separators=(",", ":")))
    for path in output.rglob("*.html"):
        text = path.read_text()
        text = text.replace('var baseUrl = "/"', 'var baseUrl = "/sdk/"')
        text = re.sub(r'(href|src)="/(?!sdk/)', r'\1="/sdk/', text)
        way = "../" * (len(path.relative_to(output).parts) - 1)
        text = re.sub(r"(<body[^>]*>)", rf'\1<nav aria-label="Site"><a href="{way}../index.html">Countersign documentation</a></nav>', text, count=1)
        path.write_text(text)


def main() -> None:
    parser = argparse.ArgumentParser(prog="build.py", description="Builds the documentation site.")
    parser.add_argument("--root", type=pathlib.Path, default=HERE.parents[1], help="the repository")
    parser.add_argument("--binary", type=pathlib.Path, help="the program, for its commands, settings and API")
    parser.add_argument("--sdk", type=pathlib.Path, help="docc's site")
    parser.add_argument("output", type=pathlib.Path)
    given = parser.parse_args()
    scratch = given.output.resolve().with_name(given.output.name + ".new")
    shutil.rmtree(scratch, ignore_errors=True)
    site = Site(root=given.root.resolve(), binary=given.binary.resolve() if given.binary else None, sdk=given.sdk)
    try:
        site.make()
        site.write(scratch)
    except (reference.ReferenceError, OSError) as error:
        site.problems.append(str(error))
    found = site.problems or verify.problems(scratch)
    for line in found:
        print(f"docs: {line}", file=sys.stderr)
    if found:
        shutil.rmtree(scratch, ignore_errors=True)
        sys.exit(1)
    shutil.rmtree(given.output, ignore_errors=True)
    scratch.rename(given.output)
    print(f"docs: {len(site.documents) + 2} pages in {given.output}", file=sys.stderr)


if __name__ == "__main__":
    main()
