#!/usr/bin/env python3
"""Checks the documentation against the repository, offline: `check.py`, called by script/lint.

1. Relative links and their anchors in every Markdown file lead somewhere.
2. Each name in the column `code` of docs/glossary.md is an identifier in the Swift sources, and no term is defined twice.
3. Each numbered step of ARCHITECTURE.md's "Two walks" names a file that exists and functions that it declares, and the map names each
   module and its subfolders, and no others.
4. Each page in docs/ is linked from docs/README.md, and each decision from docs/decisions/README.md, once, and in the order of
   the numbers; README.md has fewer than 150 lines.
5. Prose is wrapped at 110 columns in README, ARCHITECTURE, CONTRIBUTING, docs/ (except decisions), the examples
   and the SDK's articles. Tables, code blocks, comments, and links that fill a line may be wider.

Exit 1 where something is missing."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
CODE = re.compile(r"```.*?```", re.S)
problems: list[str] = []


def markdown() -> list[pathlib.Path]:
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).is_file()]


def swift() -> list[pathlib.Path]:
    return [path for folder in ("Sources", "Tools") for path in (ROOT / folder).rglob("*.swift")]


def anchors(path: pathlib.Path) -> set[str]:
    """The headings' anchors, as GitHub makes them."""
    found: set[str] = set()
    for heading in re.findall(r"^#{1,6} +(.+?) *$", CODE.sub("", path.read_text()), re.M):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")
        number, unique = 0, slug
        while unique in found:
            number += 1
            unique = f"{slug}-{number}"
        found.add(unique)
    return found


def prose() -> list[pathlib.Path]:
    """The pages that must be wrapped."""
    names = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")
    folders = ("docs/", "Examples/", "Sources/SDK/Countersign.docc/")
    found = []
    for path in markdown():
        name = str(path.relative_to(ROOT))
        if name in names or name.startswith(folders) and not name.startswith("docs/decisions/"):
            found.append(path)
    return found


def wide_lines(text: str) -> list[int]:
    """The numbers of the lines over 110 columns that could be wrapped."""
    wide, is_code = [], False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith(("```", "~~~")):
            is_code = not is_code
        if is_code or len(line) <= 110 or line.lstrip().startswith(("|", "<!--")):
            continue
        # A link, an address or a piece of code that is too long by itself cannot be wrapped.
        item = re.sub(r"^\s*(?:[-*] |\d+\. )?", "", line)
        if not re.fullmatch(r"(?:`[^`]*`|\[[^\]]*\]\([^)]*\)|\S+)", item):
            wide.append(number)
    return wide


def check_wrap() -> None:
    pages = prose()
    if len(pages) < 40:
        problems.append(f"only {len(pages)} pages of prose")
    for path in pages:
        for number in wide_lines(path.read_text()):
            problems.append(f"{path.relative_to(ROOT)}:{number}: over 110 columns")


def check_links() -> None:
    for path in markdown():
        text = CODE.sub("", path.read_text())
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"[a-z]+:", link):
                continue
            name, _, anchor = link.partition("#")
            target = (path.parent / name).resolve() if name else path
            if not target.exists():
                problems.append(f"{path.relative_to(ROOT)}: {link}: no such file")
            elif anchor and target.suffix == ".md" and anchor not in anchors(target):
                problems.append(f"{path.relative_to(ROOT)}: {link}: no such heading")


def check_glossary() -> None:
    files = [set(re.findall(r"\w+", path.read_text())) for path in swift()]
    known = set().union(*files)
    terms: set[str] = set()
    rows = [line.split(" | ") for line in (ROOT / "docs/glossary.md").read_text().splitlines() if line.startswith("| ")]
    rows = [row for row in rows if row[0] not in ("| term", "| ---")]
    if len(rows) < 100:
        problems.append(f"docs/glossary.md: only {len(rows)} terms")
    for term, _, code, *_ in rows:
        if term in terms:
            problems.append(f"docs/glossary.md: {term[2:]} is defined twice")
        terms.add(term)
        for name in re.findall(r"`([^`]+)`", code):
            words = set(re.findall(r"\w+", name))
            # A member stands in some file with its type.
            if not words <= known or not any(words <= file for file in files):
                problems.append(f"docs/glossary.md: {term[2:]}: `{name}` is not in the sources")


def check_walks(text: str) -> None:
    walks = text.split("\n## Two walks\n")[1].split("\n## ")[0]
    steps = re.findall(r"^\d+\. (.+(?:\n   +.+)*)", walks, re.M)
    if len(steps) < 25:
        problems.append(f"ARCHITECTURE.md: the walks have only {len(steps)} steps")
    for step in steps:
        named = re.findall(r"`((?:Sources|Lab)/[\w/+]+\.swift)`\s+`(\w+)`", step)
        if not named or not step.startswith("`"):
            problems.append(f"ARCHITECTURE.md: a step without a file and a function: {step[:60]}")
        for name, function in named:
            path = ROOT / name
            if not path.is_file():
                problems.append(f"ARCHITECTURE.md: {name}: no such file")
            elif not re.search(rf"\bfunc {function}\b|\b(?:let|var) {function}\b|\b{function}\(" if function == "init"
                               else rf"\bfunc {function}\b", path.read_text()):
                problems.append(f"ARCHITECTURE.md: {name} declares no function {function}")


def check_map(text: str) -> None:
    rows = [line.split(" | ") for line in text.split("\n## The map\n")[1].split("\n## ")[0].splitlines() if line.startswith("| `")]
    described = {}
    for row in rows:
        folder = row[0].strip("| `")
        if not (ROOT / folder).is_dir():
            problems.append(f"ARCHITECTURE.md: {folder}: no such folder")
            continue
        described[folder] = row[-1]
        children = {each.name for each in (ROOT / folder).iterdir() if each.is_dir() and each.suffix != ".docc"}
        if folder != "Sources/C":
            for child in sorted(children):
                if f"`{child}`" not in row[-1]:
                    problems.append(f"ARCHITECTURE.md: {folder}/{child} is not in the map")
            for child in re.findall(r"(?:^|[.,:] )`(\w+)`(?=[:,.( ]|$)", row[-1].rstrip(" |")):
                if child[0].isupper() and child not in children and not (ROOT / folder / f"{child}.swift").exists():
                    if child not in ("LegacyClient",):
                        problems.append(f"ARCHITECTURE.md: {folder}/{child}: no such folder")
    for module in sorted((ROOT / "Sources").iterdir()):
        if module.is_dir() and f"Sources/{module.name}" not in described:
            problems.append(f"ARCHITECTURE.md: Sources/{module.name} is not in the map")


def check_index() -> None:
    index = (ROOT / "docs/README.md").read_text()
    for page in [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs/operate").glob("*.md")]:
        name = str(page.relative_to(ROOT / "docs"))
        if name != "README.md" and f"({name})" not in index:
            problems.append(f"docs/README.md: {name} is not linked")
    listed = re.findall(r"^\| \[(\d{4})\]\(([^)]+)\)", (ROOT / "docs/decisions/README.md").read_text(), re.M)
    decisions = sorted(page.name for page in (ROOT / "docs/decisions").glob("[0-9]*.md"))
    for name in sorted({*decisions} ^ {name for _, name in listed}):
        problems.append(f"docs/decisions/README.md: {name} is {'not listed' if name in decisions else 'listed and does not exist'}")
    if listed != sorted(set(listed)) or any(not name.startswith(f"{number}-") for number, name in listed):
        problems.append("docs/decisions/README.md: a decision is listed twice, out of order, or under another number")
    if len((ROOT / "README.md").read_text().splitlines()) >= 150:
        problems.append("README.md: 150 lines or more")


def main() -> None:
    architecture = (ROOT / "ARCHITECTURE.md").read_text()
    check_links()
    check_glossary()
    check_walks(architecture)
    check_map(architecture)
    check_index()
    check_wrap()
    for line in problems:
        print(f"documentation: {line}", file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
