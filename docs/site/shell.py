"""The frame of each page: landmarks, navigation, the search form. There is no inline script and no inline style."""
import html
from dataclasses import dataclass

POLICY = "default-src 'none'; script-src 'self' file:; style-src 'self' file:; img-src 'self' file: data:; form-action 'self' file:; base-uri 'none'"


@dataclass(frozen=True)
class Entry:
    title: str
    place: str


@dataclass(frozen=True)
class Group:
    name: str
    purpose: str
    entries: tuple[Entry, ...]


def up(place: str) -> str:
    """The relative way from a page to the site's root."""
    return "../" * place.count("/")


def navigation(groups: list[Group], *, place: str) -> str:
    parts = []
    for group in groups:
        is_open = any(entry.place == place for entry in group.entries)
        parts.append(f"<details{' open' if is_open else ''}><summary>{html.escape(group.name)}</summary><ul>")
        for entry in group.entries:
            current = ' aria-current="page"' if entry.place == place else ""
            parts.append(f'<li><a href="{up(place)}{entry.place}"{current}>{html.escape(entry.title)}</a></li>')
        parts.append("</ul></details>")
    return "\n".join(parts)


def page(*, title: str, place: str, body: str, groups: list[Group], source: str = "", scripts: tuple[str, ...] = ()) -> str:
    """A whole page. `scripts` are files of the site that it needs besides the keyboard shortcut."""
    root = up(place)
    loaded = "\n".join(f'<script src="{root}assets/{name}" defer></script>' for name in (*scripts, "keys.js"))
    footer = f"Made from <code>{html.escape(source)}</code>." if source else "Made by script/docs."
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{html.escape(title)} · Countersign</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="{root}assets/site.css">
{loaded}
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header>
<a class="name" href="{root}index.html">Countersign</a>
<form role="search" action="{root}search.html" method="get">
<label for="q">Search</label>
<input id="q" name="q" type="search" autocomplete="off" aria-keyshortcuts="/">
</form>
</header>
<div class="columns">
<nav aria-label="Pages">
<details class="menu" open><summary>Pages</summary>
{navigation(groups, place=place)}
</details>
</nav>
<main id="content" tabindex="-1">
{body}
<footer>{footer}</footer>
</main>
</div>
</body>
</html>
"""
