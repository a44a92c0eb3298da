"""The description of the API as a page: one file, for whoever has a browser and maybe no internet."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from typing import Any

import yaml

from pincompute.objects.content import Object

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2024; --soft: #5c6670; --ground: #fff; --raised: #f5f6f8;
  --line: #dfe3e8; --get: #1a6f3c; --post: #0b5cad; --patch: #8a5a00; --delete: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ec; --soft: #9aa4ae; --ground: #15181b; --raised: #1e2327;
  --line: #32393f; --get: #6fd08c; --post: #7db8f5; --patch: #e2b75c; --delete: #f2938c; } }
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: var(--ground); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 1.5rem 1rem 6rem; }
h1 { margin: 0; } h2 { margin: 2.5rem 0 .5rem; } h3 { font-size: 1rem; margin: 1.2rem 0 .3rem; }
p { margin: .4rem 0; } a { color: var(--post); } .soft { color: var(--soft); }
nav { display: flex; flex-wrap: wrap; gap: .3rem 1rem; margin: 1rem 0; }
code, pre { font: .875rem/1.5 ui-monospace, monospace; }
pre { padding: .7rem .9rem; margin: .3rem 0; background: var(--ground); border: 1px solid var(--line);
  border-radius: .4rem; overflow-x: auto; }
details { background: var(--raised); border: 1px solid var(--line); border-radius: .5rem; margin: .4rem 0; }
details > div { padding: .2rem 1rem 1rem; border-top: 1px solid var(--line); }
summary { display: grid; grid-template-columns: 4.5rem minmax(0, 3fr) minmax(0, 2fr); gap: .2rem .8rem;
  padding: .55rem 1rem; cursor: pointer; list-style: none; align-items: baseline; }
summary::-webkit-details-marker { display: none; }
summary:hover code { text-decoration: underline; }
summary:focus-visible { outline: 2px solid var(--post); border-radius: .5rem; }
summary code { overflow-wrap: anywhere; }
summary b { font: 700 .8rem/1.5 ui-monospace, monospace; }
.get { color: var(--get); } .post { color: var(--post); } .patch { color: var(--patch); }
.delete { color: var(--delete); }
table { width: 100%; border-collapse: collapse; }
td { padding: .35rem .8rem .35rem 0; border-top: 1px solid var(--line); vertical-align: top; overflow-wrap: anywhere; }
tr:first-child td { border-top: 0; } td:first-child { width: 12rem; } td:nth-child(2) { width: 13rem; }
ul { margin: 0; padding-left: 1.1rem; }
@media (max-width: 40rem) { summary { grid-template-columns: 4.5rem 1fr; } summary span { grid-column: 2; }
  td { display: block; width: auto !important; padding: 0; border: 0; } td:first-child { padding-top: .6rem; } }
"""
_WHO = """\
<h2 id="who">Who asks</h2>
<p>Every request says who sends it: <code>Authorization: Bearer TOKEN</code> with the token of a login or of a service
account that was made for the desk, or by TLS with a program's own certificate. What somebody may do in a project is
told at each way below, and by <code>GET /v1/whoami</code>.</p>
<h2 id="refused">What is refused</h2>
<p>Whatever is wrong is told at once, as <code>application/problem+json</code>: each with its <code>reason</code>, the
place, and in <code>next</code> what to type or whom to ask. While a desk is busy it answers <code>429</code> and says
in <code>Retry-After</code> when to come back. What may change something can be sent again under its
<code>Idempotency-Key</code>: it is not done twice.</p>
"""


def page(document: Object) -> str:
    info, tags = document["info"], [each["name"] for each in document["tags"]]
    by_tag: dict[str, list[str]] = {tag: [] for tag in tags}
    for path, ways in document["paths"].items():
        for method, way in ways.items():
            by_tag[way["tags"][0]].append("".join(_way(method, path, way)))
    named = {
        "who": "Who asks",
        "refused": "What is refused",
        **{f"about-{tag}": tag.capitalize() for tag in tags},
        "types": "Types",
    }
    return "".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>The API of {escape(info['title'])}</title><style>{_STYLE}</style></head><body><main>",
            f'<h1>The API of {escape(info["title"])}</h1><p class="soft">OpenAPI {document["openapi"]}, version ',
            f'{escape(info["version"])}; for programs: <a href="openapi.json">openapi.json</a></p>',
            f"<p>{_prose(info['description'])}</p><nav>",
            *(f'<a href="#{key}">{escape(word)}</a>' for key, word in named.items()),
            f"</nav>{_WHO}",
            *(f'<h2 id="about-{tag}">{escape(tag.capitalize())}</h2>{"".join(ways)}' for tag, ways in by_tag.items()),
            '<h2 id="types">Types</h2>',
            *(each for name, schema in document["components"]["schemas"].items() for each in _shape(name, schema)),
            "</main></body></html>\n",
        ]
    )


def _way(method: str, path: str, way: Object) -> Iterator[str]:
    yield f'<details id="{way["operationId"]}"><summary><b class="{method}">{method.upper()}</b>'
    yield f"<code>{escape(path)}</code><span>{escape(way['summary'])}</span></summary><div>"
    yield f'<p class="soft">{escape(way["description"])}</p>'
    if way["parameters"]:
        yield "<h3>Says</h3><table>"
        for each in way["parameters"]:
            words = _prose(each["description"])
            yield f"<tr><td><code>{escape(each['name'])}</code><br><span class=soft>{each['in']}</span></td>"
            yield f"<td>{_type(each['schema'])}</td><td>{words}</td></tr>"
        yield "</table>"
    for media, content in way.get("requestBody", {}).get("content", {}).items():
        yield f"<h3>Sends {escape(media)}</h3><p>{_type(content['schema'])}</p>"
    yield f"<h3>For example</h3><pre>{escape(_example(method, path, way))}</pre><h3>Is answered</h3><table>"
    for status, answer in way["responses"].items():
        kinds = [_type(each.get("x-itemSchema", each["schema"])) for each in answer.get("content", {}).values()]
        yield f"<tr><td><code>{status}</code></td><td>{', '.join(kinds)}</td>"
        yield f"<td>{_words(answer['description'])}</td></tr>"
    yield "</table></div></details>"


def _example(method: str, path: str, way: Object) -> str:
    """As somebody types it."""
    for each in way["parameters"]:
        if each["in"] == "path":
            path = path.replace(f"{{{each['name']}}}", str(each["example"]))
    words = ["curl", "-X", method.upper()] if method != "get" else ["curl"]
    if way.get("security") != []:
        words += ["-H", '"Authorization: Bearer $TOKEN"']
    lines = f"{' '.join(words)} $DESK{path}"
    for media, content in way.get("requestBody", {}).get("content", {}).items():
        said = content["example"]
        body = said if isinstance(said, str) else yaml.safe_dump(said, default_flow_style=True).strip()
        lines += f" \\\n  -H 'Content-Type: {media}' --data-binary @- <<END\n{body.rstrip()}\nEND"
    return lines


def _prose(text: str) -> str:
    """As its writer has marked it."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _words(text: str) -> str:
    """Reasons stand in a list, each in its code."""
    lines = text.splitlines()
    if not all(line.startswith("- ") for line in lines):
        return _prose(text)
    told = []
    for line in lines:
        code, _, means = line.removeprefix("- ").partition(": ")
        told.append(f"<li><code>{escape(code.strip('`'))}</code>: {escape(means)}</li>")
    return f"<ul>{''.join(told)}</ul>"


def _shape(name: str, schema: Object) -> Iterator[str]:
    words = schema.get("description", "")
    yield f'<details id="{escape(name)}"><summary><b>type</b><code>{escape(name)}</code>'
    yield f"<span>{_prose(words)}</span></summary><div>"
    fields = schema.get("properties")
    if not fields:
        yield f"<p>{_type(schema)}</p></div></details>"
        return
    yield "<table>"
    for field, each in fields.items():
        must = " <b>Must be there.</b>" if field in schema.get("required", ()) else ""
        yield f"<tr><td><code>{escape(field)}</code></td><td>{_type(each)}</td>"
        yield f"<td>{_prose(each.get('description', ''))}{must}</td></tr>"
    yield "</table></div></details>"


def _type(schema: Any) -> str:
    """In words, with the way to what it names."""
    if not isinstance(schema, dict):
        return "anything"
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#{name}">{name}</a>'
    if several := schema.get("oneOf") or schema.get("anyOf"):
        return " or ".join(dict.fromkeys(map(_type, several)))
    if said := [schema["const"]] if "const" in schema else schema.get("enum"):
        return " or ".join(f"<code>{escape(str(each))}</code>" for each in said)
    kinds = schema.get("type", "anything")
    return " or ".join(_kind(each, schema) for each in ([kinds] if isinstance(kinds, str) else kinds)) + _bounds(schema)


def _kind(kind: str, schema: Object) -> str:
    if kind == "array":
        return f"list of {_type(schema.get('items'))}"
    if kind == "object" and (inner := schema.get("additionalProperties")):
        return f"{_type(inner)} by name"
    names = {"object": "fields", "string": "text", "integer": "number", "boolean": "true or false", "null": "nothing"}
    return names.get(kind, kind)


def _bounds(schema: Object) -> str:
    lower, upper, longest = schema.get("minimum"), schema.get("maximum"), schema.get("maxLength")
    if lower is not None and upper is not None:
        return f", {lower:,} to {upper:,}"
    return f", at most {longest:,} letters" if longest else ""
