"""Renders a Markdown file of the repository to HTML, with links rewritten to the site's files.

A link or an anchor that leads nowhere, and HTML other than a comment, is a problem with file and line. No style
attribute is written, so that the site works under a strict Content-Security-Policy."""
import pathlib
import re
from dataclasses import dataclass, field

from markdown_it import MarkdownIt
from markdown_it.token import Token

COMMENT = re.compile(r"<!--.*?-->\s*", re.S)
SCHEME = re.compile(r"[a-z][a-z+.-]*:")


@dataclass
class Section:
    """A heading with the plain text below it, for the search index."""
    anchor: str
    heading: str
    text: list[str] = field(default_factory=list)


@dataclass
class Document:
    title: str
    html: str
    sections: list[Section]


@dataclass
class Source:
    """A Markdown file, parsed; `path` is relative to the repository."""
    path: str
    tokens: list[Token]
    anchors: dict[int, str]


def markdown() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("table")


def plain(token: Token) -> str:
    parts = []
    for child in token.children or []:
        if child.type in ("text", "code_inline", "image"):
            parts.append(child.content)
        elif child.type in ("softbreak", "hardbreak"):
            parts.append(" ")
    return "".join(parts)


def parse(path: str, text: str) -> Source:
    """Parses a file, and gives each heading the anchor that GitHub gives it."""
    tokens = markdown().parse(text)
    anchors: dict[int, str] = {}
    for index, token in enumerate(tokens):
        if token.type == "heading_open":
            slug = re.sub(r"[^\w\- ]", "", plain(tokens[index + 1]).lower()).replace(" ", "-")
            number, unique = 0, slug
            while unique in anchors.values():
                number += 1
                unique = f"{slug}-{number}"
            anchors[index] = unique
    return Source(path=path, tokens=tokens, anchors=anchors)


class Renderer:
    """Renders sources whose links lead to one another or to other files of the repository."""

    def __init__(self, *, root: pathlib.Path, sources: dict[str, Source], places: dict[str, str], problems: list[str]):
        self.root, self.sources, self.places, self.problems = root, sources, places, problems
        self.markdown = markdown()

    def render(self, source: Source, *, up: str) -> Document:
        sections = [Section(anchor="", heading="")]
        title = ""
        for index, token in enumerate(source.tokens):
            line = token.map[0] + 1 if token.map else 0
            if token.type == "heading_open":
                token.attrSet("id", source.anchors[index])
                heading = plain(source.tokens[index + 1])
                title = title or heading
                sections.append(Section(anchor=source.anchors[index], heading=heading))
            elif token.type == "inline":
                if source.tokens[index - 1].type != "heading_open":
                    sections[-1].text.append(plain(token))
                self.inline(token, source=source, line=line, up=up)
            elif token.type in ("fence", "code_block"):
                sections[-1].text.append(token.content)
            elif token.type == "html_block":
                token.content = self.without_comments(token.content, place=f"{source.path}:{line}")
            style = str(token.attrGet("style") or "")
            if style:
                del token.attrs["style"]
                token.attrSet("class", style.replace("text-align:", "align-"))
        html = self.markdown.renderer.render(source.tokens, self.markdown.options, {})
        html = html.replace("<table>", '<div class="wide" tabindex="0" role="region" aria-label="table"><table>')
        html = html.replace("</table>", "</table></div>").replace("<pre>", '<pre tabindex="0">')
        return Document(title=title or source.path, html=html, sections=sections)

    def without_comments(self, text: str, *, place: str) -> str:
        rest = COMMENT.sub("", text)
        if rest.strip():
            self.problems.append(f"{place}: HTML '{rest.strip()[:40]}'; expected Markdown")
        return ""

    def inline(self, token: Token, *, source: Source, line: int, up: str) -> None:
        for child in token.children or []:
            if child.type in ("softbreak", "hardbreak"):
                line += 1
            elif child.type == "html_inline":
                child.content = self.without_comments(child.content, place=f"{source.path}:{line}")
            elif child.type == "link_open":
                child.attrSet("href", self.link(str(child.attrGet("href")), source=source, line=line, up=up))
            elif child.type == "image":
                name = str(child.attrGet("src"))
                if SCHEME.match(name):
                    self.problems.append(f"{source.path}:{line}: {name}: expected an image of the repository")
                elif not child.content:
                    self.problems.append(f"{source.path}:{line}: {name}: expected a text that describes the image")
                child.attrSet("src", self.link(name, source=source, line=line, up=up))

    def link(self, link: str, *, source: Source, line: int, up: str) -> str:
        """The site's address of a link; other files that are linked are added to `places`."""
        if SCHEME.match(link):
            return link
        name, _, anchor = link.partition("#")
        path = (self.root / source.path).parent / name if name else self.root / source.path
        path = path.resolve()
        if not path.is_relative_to(self.root) or not path.exists():
            self.problems.append(f"{source.path}:{line}: {link}: no such file")
            return link
        target = str(path.relative_to(self.root))
        if target in self.sources and anchor and anchor not in self.sources[target].anchors.values():
            self.problems.append(f"{source.path}:{line}: {link}: no such heading")
        suffix = ".html" if path.suffix != ".png" else ""
        place = self.places.setdefault(target, f"{target}/index.html" if path.is_dir() else f"{target}{suffix}")
        return f"{up}{place}{'#' + anchor if anchor else ''}"
