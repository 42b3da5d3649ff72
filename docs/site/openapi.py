"""Renders an OpenAPI document, as `countersign openapi` prints it, as a static page."""
import html
import re
from typing import Any

from reference import table
from render import Document, Section

METHODS = ("get", "put", "post", "patch", "delete", "head", "options")


def prose(text: str) -> str:
    """Escaped text in which words between backquotes are code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))


def shape(schema: Any) -> str:
    """A schema in a few words. JSON Schema has two that are Booleans: any value, and none."""
    if not isinstance(schema, dict):
        return "any value" if schema else "no value"
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        return f'<a href="#schema-{html.escape(name)}">{html.escape(name)}</a>'
    for word in ("anyOf", "oneOf", "allOf"):
        if word in schema:
            return (" and " if word == "allOf" else " or ").join(shape(each) for each in schema[word])
    if "enum" in schema:
        return "one of " + ", ".join(f"<code>{html.escape(str(each))}</code>" for each in schema["enum"])
    kind = schema.get("type", "any value")
    kind = " or ".join(kind) if isinstance(kind, list) else kind
    if kind == "array":
        return f"list of {shape(schema.get('items', {}))}"
    bounds = [f"{words} {schema[name]}" for name, words in {
        "minimum": "at least", "maximum": "at most", "maxLength": "length at most", "pattern": "matches"}.items() if name in schema]
    return html.escape(f"{kind} ({', '.join(bounds)})" if bounds else str(kind))


def members(schema: Any, *, prefix: str = "", depth: int = 0) -> list[tuple[str, ...]]:
    """The rows of an object's members, with those of the objects inside it."""
    rows: list[tuple[str, ...]] = []
    if not isinstance(schema, dict):
        return rows
    for name, each in schema.get("properties", {}).items():
        path = f"{prefix}{name}"
        meaning = each.get("description", "") if isinstance(each, dict) else ""
        rows.append((f"<code>{html.escape(path)}</code>", shape(each), "yes" if name in schema.get("required", []) else "no",
                     prose(meaning)))
        inner = each.get("items", each) if isinstance(each, dict) else {}
        if depth < 4 and isinstance(inner, dict):
            rows += members(inner, prefix=f"{path}{'[]' if isinstance(each, dict) and 'items' in each else ''}.", depth=depth + 1)
    return rows


def content(part: dict[str, Any]) -> str:
    parts = []
    for kind, media in part.get("content", {}).items():
        schema = media.get("schema", {})
        rows = members(schema)
        parts.append(f"<p><code>{html.escape(kind)}</code>: {shape(schema)}</p>")
        if rows:
            parts.append(table(("member", "value", "required", "meaning"), rows))
    return "\n".join(parts)


def operation(path: str, *, method: str, values: dict[str, Any], components: dict[str, Any]) -> str:
    anchor = html.escape(values.get("operationId", f"{method}-{path}"))
    parts = [f'<h2 id="{anchor}"><code>{method.upper()} {html.escape(path)}</code></h2>', f"<p>{prose(values.get('summary', ''))}</p>"]
    if values.get("description"):
        parts.append(f"<p>{prose(values['description'])}</p>")
    scopes = [f"{name}{': ' + ', '.join(scopes) if scopes else ''}" for each in values.get("security", []) for name, scopes in each.items()]
    if scopes:
        parts.append(f"<p>Requires: <code>{html.escape('; '.join(scopes))}</code></p>")
    given = [(f"<code>{html.escape(each['name'])}</code>", html.escape(each["in"]), shape(each.get("schema", {})),
              "yes" if each.get("required") else "no", prose(each.get("description", "")))
             for each in (resolved(each, components=components) for each in values.get("parameters", []))]
    if given:
        parts.append("<h3>Parameters</h3>" + table(("name", "in", "value", "required", "meaning"), given))
    if "requestBody" in values:
        parts.append("<h3>Request body</h3>" + content(resolved(values["requestBody"], components=components)))
    answers = [(f"<code>{html.escape(status)}</code>", prose(resolved(each, components=components).get("description", "")))
               for status, each in values.get("responses", {}).items()]
    parts.append("<h3>Responses</h3>" + table(("status", "meaning"), answers))
    for status, each in values.get("responses", {}).items():
        if status.startswith("2") and "content" in each:
            parts.append(f"<h4>Content of {html.escape(status)}</h4>" + content(each))
    return "\n".join(parts)


def resolved(part: dict[str, Any], *, components: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in part:
        return part
    kind, name = part["$ref"].split("/")[-2:]
    found: dict[str, Any] = components[kind][name]
    return found


def document(described: dict[str, Any]) -> Document:
    title = f"{described['info']['title']}: routes"
    components = described.get("components", {})
    parts = [f"<h1>{html.escape(title)}</h1>", f"<p>{prose(described['info'].get('description', ''))}</p>"]
    parts += [f"<p>Below <code>{html.escape(each['url'])}</code>.</p>" for each in described.get("servers", [])]
    sections = [Section(anchor="", heading="", text=[described["info"].get("description", "")])]
    for path, methods in described["paths"].items():
        for method in METHODS:
            if method in methods:
                values = methods[method]
                parts.append(operation(path, method=method, values=values, components=components))
                sections.append(Section(anchor=values.get("operationId", f"{method}-{path}"), heading=f"{method.upper()} {path}",
                                        text=[values.get("summary", ""), values.get("description", "")]))
    for name, schema in components.get("schemas", {}).items():
        meaning = schema.get("description", "") if isinstance(schema, dict) else ""
        parts.append(f'<h2 id="schema-{html.escape(name)}">{html.escape(name)}</h2>\n<p>{prose(meaning)}</p>')
        rows = members(schema)
        parts.append(table(("member", "value", "required", "meaning"), rows) if rows else f"<p>{shape(schema)}</p>")
    return Document(title=title, html="\n".join(parts), sections=sections)
