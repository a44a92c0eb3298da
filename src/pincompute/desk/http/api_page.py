"""Renders the OpenAPI document as one HTML page without scripts or external resources, as it must work offline."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from importlib import resources
from string import Template
from typing import Any

import yaml

from pincompute.objects.content import Object

_STATIC = resources.files("pincompute.desk.http") / "static"


def render_page(document: Object) -> str:
    info, tags = document["info"], [each["name"] for each in document["tags"]]
    by_tag: dict[str, list[str]] = {tag: [] for tag in tags}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            by_tag[operation["tags"][0]].append("".join(_render_operation(method, path, operation)))
    sections = {
        "authentication": "Authentication",
        "errors": "Errors",
        **{f"about-{tag}": tag.capitalize() for tag in tags},
        "types": "Types",
    }
    schemas = document["components"]["schemas"]
    return Template((_STATIC / "api.html").read_text(encoding="utf-8")).substitute(
        title=escape(info["title"]),
        style=(_STATIC / "api.css").read_text(encoding="utf-8"),
        openapi=escape(document["openapi"]),
        version=escape(info["version"]),
        description=_render_prose(info["description"]),
        navigation="".join(f'<a href="#{key}">{escape(title)}</a>' for key, title in sections.items()),
        endpoints="".join(
            f'<h2 id="about-{tag}">{escape(tag.capitalize())}</h2>{"".join(rendered)}'
            for tag, rendered in by_tag.items()
        ),
        types="".join(part for name, schema in schemas.items() for part in _render_schema(name, schema)),
    )


def _render_operation(method: str, path: str, operation: Object) -> Iterator[str]:
    yield f'<details id="{operation["operationId"]}"><summary><b class="{method}">{method.upper()}</b>'
    yield f"<code>{escape(path)}</code><span>{escape(operation['summary'])}</span></summary><div>"
    yield f'<p class="muted">{escape(operation["description"])}</p>'
    if operation["parameters"]:
        yield "<h3>Parameters</h3><table>"
        for parameter in operation["parameters"]:
            yield f"<tr><td><code>{escape(parameter['name'])}</code><br><span class=muted>{parameter['in']}</span></td>"
            yield f"<td>{_render_type(parameter['schema'])}</td><td>{_render_prose(parameter['description'])}</td></tr>"
        yield "</table>"
    for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
        yield f"<h3>Request body: {escape(media_type)}</h3><p>{_render_type(content['schema'])}</p>"
    yield f"<h3>Example</h3><pre>{escape(_curl_example(method, path, operation))}</pre><h3>Responses</h3><table>"
    for status, response in operation["responses"].items():
        contents = response.get("content", {}).values()
        types = [_render_type(each.get("x-itemSchema", each["schema"])) for each in contents]
        yield f"<tr><td><code>{status}</code></td><td>{', '.join(types)}</td>"
        yield f"<td>{_render_reasons(response['description'])}</td></tr>"
    yield "</table></div></details>"


def _curl_example(method: str, path: str, operation: Object) -> str:
    for parameter in operation["parameters"]:
        if parameter["in"] == "path":
            path = path.replace(f"{{{parameter['name']}}}", str(parameter["example"]))
    words = ["curl", "-X", method.upper()] if method != "get" else ["curl"]
    if operation.get("security") != []:
        words += ["-H", '"Authorization: Bearer $TOKEN"']
    lines = f"{' '.join(words)} $DESK{path}"
    for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
        example = content["example"]
        body = example if isinstance(example, str) else yaml.safe_dump(example, default_flow_style=True).strip()
        lines += f" \\\n  -H 'Content-Type: {media_type}' --data-binary @- <<END\n{body.rstrip()}\nEND"
    return lines


def _render_prose(text: str) -> str:
    """Text with `code`."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _render_reasons(text: str) -> str:
    """A list, if every line is one of reasons; otherwise prose."""
    lines = text.splitlines()
    if not all(line.startswith("- ") for line in lines):
        return _render_prose(text)
    items = []
    for line in lines:
        code, _, meaning = line.removeprefix("- ").partition(": ")
        items.append(f"<li><code>{escape(code.strip('`'))}</code>: {escape(meaning)}</li>")
    return f"<ul>{''.join(items)}</ul>"


def _render_schema(name: str, schema: Object) -> Iterator[str]:
    yield f'<details id="{escape(name)}"><summary><b>type</b><code>{escape(name)}</code>'
    yield f"<span>{_render_prose(schema.get('description', ''))}</span></summary><div>"
    fields = schema.get("properties")
    if not fields:
        yield f"<p>{_render_type(schema)}</p></div></details>"
        return
    yield "<table>"
    for field, field_schema in fields.items():
        required = " <b>Required.</b>" if field in schema.get("required", ()) else ""
        yield f"<tr><td><code>{escape(field)}</code></td><td>{_render_type(field_schema)}</td>"
        yield f"<td>{_render_prose(field_schema.get('description', ''))}{required}</td></tr>"
    yield "</table></div></details>"


def _render_type(schema: Any) -> str:
    """A type in words, with links to named types."""
    if not isinstance(schema, dict):
        return "any"
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#{name}">{name}</a>'
    if alternatives := schema.get("oneOf") or schema.get("anyOf"):
        return " or ".join(dict.fromkeys(map(_render_type, alternatives)))
    if values := [schema["const"]] if "const" in schema else schema.get("enum"):
        return " or ".join(f"<code>{escape(str(each))}</code>" for each in values)
    types = schema.get("type", "any")
    names = [types] if isinstance(types, str) else types
    return " or ".join(_type_name(each, schema) for each in names) + _bounds_text(schema)


def _type_name(type_: str, schema: Object) -> str:
    if type_ == "array":
        return f"list of {_render_type(schema.get('items'))}"
    if type_ == "object" and (values := schema.get("additionalProperties")):
        return f"map of {_render_type(values)}"
    return type_


def _bounds_text(schema: Object) -> str:
    lower, upper, max_length = schema.get("minimum"), schema.get("maximum"), schema.get("maxLength")
    if lower is not None and upper is not None:
        return f", {lower:,} to {upper:,}"
    return f", at most {max_length:,} characters" if max_length else ""
