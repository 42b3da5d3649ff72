"""Checks a built site: each link, anchor and image leads to a file of the site; no page loads anything from
elsewhere; there is no inline script or style. `verify.py SITE`; the pages that docc makes are docc's to check."""
import pathlib
import posixpath
import sys
import urllib.parse
from html.parser import HTMLParser

LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "video": "src", "audio": "src"}


class Page(HTMLParser):
    """What one page refers to, and where."""

    def __init__(self, text: str):
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[tuple[int, str]] = []
        self.loaded: list[tuple[int, str]] = []
        self.problems: list[tuple[int, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values, line = dict(attrs), self.getpos()[0]
        name = values.get("id")
        if name is not None:
            if name in self.ids:
                self.problems.append((line, f"id '{name}' stands twice; expected once"))
            self.ids.add(name)
        if tag in ("a", "form"):
            self.links.append((line, values.get("href") or values.get("action") or ""))
        if tag in LOADED and values.get(LOADED[tag]):
            self.loaded.append((line, values[LOADED[tag]] or ""))
        if tag == "style" or tag == "script" and not values.get("src"):
            self.problems.append((line, f"inline {tag}; expected a file"))
        for attribute in values:
            if attribute == "style" or attribute.startswith("on"):
                self.problems.append((line, f"attribute '{attribute}'; expected none"))
        if tag == "img" and not values.get("alt"):
            self.problems.append((line, "image without a text; expected alt"))


def problems(site: pathlib.Path) -> list[str]:
    """What is wrong with the site: one line each, with file and line."""
    pages = {path: Page(path.read_text()) for path in sorted(site.rglob("*.html")) if path.relative_to(site).parts[0] != "sdk"}
    found = []
    # Names are compared as text: asking the file system about each link takes seconds.
    files = {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()}
    ids = {path.relative_to(site).as_posix(): page.ids for path, page in pages.items()}
    for path, page in pages.items():
        name = path.relative_to(site).as_posix()
        found += [f"{name}:{line}: {text}" for line, text in page.problems]
        for line, link in page.links + page.loaded:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme == "data":
                continue
            if parts.scheme or parts.netloc:
                if (line, link) in page.loaded or parts.scheme not in ("https", "http", "mailto"):
                    found.append(f"{name}:{line}: {link}: loaded from elsewhere; expected a file of the site")
                continue
            target = posixpath.normpath(posixpath.join(posixpath.dirname(name), urllib.parse.unquote(parts.path))) if parts.path else name
            if parts.path.endswith("/"):
                target = posixpath.join(target, "index.html")
            if link == "" or target not in files:
                found.append(f"{name}:{line}: {link or 'empty link'}: no such file in the site")
            elif parts.fragment and target in ids and urllib.parse.unquote(parts.fragment) not in ids[target]:
                found.append(f"{name}:{line}: {link}: no such anchor")
    return found


if __name__ == "__main__":
    lines = problems(pathlib.Path(sys.argv[1]).resolve())
    for each in lines:
        print(f"docs: {each}", file=sys.stderr)
    sys.exit(1 if lines else 0)
