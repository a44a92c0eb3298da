"""The description of the API, OpenAPI 3.1: made of the ways to ask, what each needs and speaks, and the Reasons."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from http import HTTPStatus
from itertools import chain
from typing import Any

import msgspec
from aiohttp import web

from pincompute import __version__
from pincompute.api.receipt import Receipt
from pincompute.api.whoami import SignIn
from pincompute.api.wire import fields_of
from pincompute.base.openid import DISCOVERY
from pincompute.base.problem import Where
from pincompute.base.reasons import (
    CLUSTER_REFUSED,
    CLUSTER_UNREACHABLE,
    DESK_BUSY,
    INTERNAL,
    NOT_ALLOWED,
    NOT_SIGNED_IN,
    PROJECT_UNKNOWN,
    REQUEST_SLOW,
    SIGN_IN_AWAY,
    TOO_MANY_REQUESTS,
    UPGRADE_NEEDED,
    Reason,
)
from pincompute.objects.content import Object
from pincompute.planning.rights import Verb
from pincompute.submission.guards import NOTHING, needed_by
from pincompute.submission.paths import PLACES
from pincompute.submission.requests import MAX_KEY
from pincompute.submission.schemas import ref, schemas, words_of
from pincompute.submission.speech import DOCUMENT, DOCUMENTS, LINES, PROBLEM, Manner, Speech, Text, speech_of

_JSON = "application/json"
_DESCRIBED = {DOCUMENT: "WorkloadDocument", DOCUMENTS: "Document"}
_ABOUT = """\
What a person or a program asks of PinCompute: deploy, look, change, and go into what runs. Whatever is refused is a \
`problem+json` with all that is wrong at once: each with its reason, the place, and what to type next; \
docs/reasons.md has a section for every reason. Paths begin with the version: within it, fields and ways to ask are \
only added."""
_BEFORE = (NOT_SIGNED_IN, SIGN_IN_AWAY)
"""Why nobody is let in."""
_BUSY = (TOO_MANY_REQUESTS, DESK_BUSY)
_LATER = {"headers": {"Retry-After": {"$ref": "#/components/headers/Later"}}}
_ANYWHERE = (INTERNAL, CLUSTER_REFUSED, CLUSTER_UNREACHABLE)


def described(ways: Sequence[web.RouteDef], sign_in: SignIn) -> Object:
    """The whole document."""
    speeches = [(way, speech) for way in ways if (speech := speech_of(way.handler))]
    types = [type_ for _, speech in speeches for type_ in _types(speech)]
    found = schemas([*types, Receipt])
    asked = iter(found.asked)
    known = {id(type_): schema for type_, schema in zip([*types, Receipt], asked, strict=True)}
    paths: Object = {}
    for way, speech in speeches:
        paths.setdefault(way.path, {})[way.method.lower()] = _operation(way, speech, known)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "PinCompute",
            "version": __version__,
            "description": _ABOUT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "Where `pin status` says that the desk is."}],
        "security": [{name: []} for name in _schemes(sign_in)],
        "tags": [{"name": each} for each in sorted({_tag(way.path) for way, _ in speeches})],
        "paths": paths,
        "components": {
            "securitySchemes": _schemes(sign_in),
            "schemas": {**found.shared, "Problem": _problem()},
            "headers": {
                "Submission": {"description": "Its id.", "schema": {"type": "string"}},
                "Later": {"description": "Seconds after which to ask again.", "schema": {"type": "integer"}},
            },
        },
    }


def _schemes(sign_in: SignIn) -> Object:
    known: Object = {
        "bearer": {
            "type": "http",
            "scheme": "bearer",
            "description": "A login's token, a service account's that was made for the desk, or this machine's own.",
        },
        "certificate": {"type": "mutualTLS", "description": "A program's own, with its SPIFFE ID."},
    }
    if sign_in.issuer:
        discovery = sign_in.issuer + DISCOVERY
        known["provider"] = {"type": "openIdConnect", "openIdConnectUrl": discovery, "description": "`pin login`"}
    return known


def _types(speech: Speech) -> Iterator[Any]:
    for each in (speech.takes, speech.gives):
        if each is not None and not isinstance(each, Text):
            yield each


def _operation(way: web.RouteDef, speech: Speech, known: dict[int, Object]) -> Object:
    needed = needed_by(way.handler)
    name = way.handler.__name__.strip("_").replace("_", "-")
    tag = _tag(way.path)
    security: Object = {"security": []} if needed == NOTHING else {}
    operation: Object = {
        "operationId": name if name == tag else f"{tag}-{name}",
        "tags": [tag],
        "summary": (way.handler.__doc__ or "").strip(),
        "description": _needs(needed),
        "parameters": [*_in_path(way.path), *_asked(speech.asks), *(_HEADERS if _is_recorded(speech) else ())],
        **security,
    }
    if speech.takes is not None:
        operation["requestBody"] = _body(speech, known)
    reasons = {each.code: each for each in chain(speech.reasons, _general(way, speech, needed))}
    operation["responses"] = {**_answers(speech, known), **_refusals(reasons.values())}
    return operation


def _tag(path: str) -> str:
    """What it is about."""
    inner = path.removeprefix("/v1").removeprefix("/projects/{project}") or "/projects"
    return re.split(r"[/.]", inner)[1] or "openapi"


def _needs(needed: Verb | str) -> str:
    if isinstance(needed, Verb):
        whom = "the platform" if needed is Verb.ADMINISTER else "the project"
        return f"For whoever may {needed.value} {whom}."
    return "Nobody has to say who they are." if needed == NOTHING else "For whoever is signed in."


def _is_recorded(speech: Speech) -> bool:
    return speech.manner in (Manner.RECORDED, Manner.TOGETHER)


def _in_path(path: str) -> Iterator[Object]:
    for name in re.findall(r"\{(\w+)\}", path):
        place = PLACES[name]
        yield {
            "name": name, "in": "path", "required": True,
            "description": f"A {place.what}.", "schema": place.schema, "example": place.example,
        }  # fmt: skip


def _asked(struct: Any) -> Iterator[Object]:
    """What may stand behind the question mark."""
    if struct is None:
        return
    words = words_of(struct)
    for field in fields_of(struct):
        (schema,), _ = msgspec.json.schema_components([field.type])
        if field.default is not msgspec.NODEFAULT and field.default not in ("", None):
            schema = {**schema, "default": msgspec.to_builtins(field.default)}
        # A parameter that is not there is not null.
        kinds = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
        schema = {key: value for key, value in schema.items() if key != "anyOf"} | (kinds[0] if kinds else {})
        yield {"name": field.encode_name, "in": "query", "description": words.get(field.name, ""), "schema": schema}


_HEADERS = (
    {
        "name": "Idempotency-Key",
        "in": "header",
        "description": "Under the same the same may be sent again, and is not done twice.",
        "schema": {"type": "string", "maxLength": MAX_KEY},
    },
    {
        "name": "Prefer",
        "in": "header",
        "description": "`respond-async`: answer as soon as it is on record.",
        "schema": {"type": "string"},
    },
)


def _body(speech: Speech, known: dict[int, Object]) -> Object:
    example = speech.example
    if isinstance(speech.takes, Text):
        schema = ref(_DESCRIBED[speech.takes])
        media, words = speech.takes.media, speech.takes.words
    else:
        schema, media, words = known[id(speech.takes)], _JSON, ""
        example = msgspec.to_builtins(example)
    content = {media: {"schema": schema, "example": example}}
    return {"required": True, "content": content, **({"description": words} if words else {})}


def _answers(speech: Speech, known: dict[int, Object]) -> Object:
    done: Object = {"description": HTTPStatus(speech.status).phrase}
    if isinstance(speech.gives, Text):
        done["content"] = {speech.gives.media: {"schema": {"type": "string", "description": speech.gives.words}}}
    elif speech.manner is Manner.LINES:
        done["description"] = "A document a line, as they come. What goes wrong meanwhile is a last line, a problem."
        # OpenAPI 3.1 has no word for it, and 3.2 calls it itemSchema.
        done["content"] = {LINES: {"schema": {"type": "string"}, "x-itemSchema": known[id(speech.gives)]}}
    elif speech.manner is Manner.CARRIED:
        done["description"] = "A websocket: what is sent by either side is carried to the other as it is."
    elif speech.gives is not None:
        done["content"] = {_JSON: {"schema": known[id(speech.gives)]}}
    found: Object = {str(speech.status): done}
    if _is_recorded(speech):
        one = speech.manner is Manner.RECORDED
        if one:
            done["headers"] = {"Submission": {"$ref": "#/components/headers/Submission"}}
        words = "It is on record, and on its way: ask again under the same key, or at `url`."
        later = known[id(Receipt if one else speech.gives)]
        found["202"] = {"description": words, "content": {_JSON: {"schema": later}}}
    return found


def _general(way: web.RouteDef, speech: Speech, needed: Verb | str) -> Iterator[Reason]:
    """What may be answered to anybody."""
    if needed == NOTHING:
        return
    yield from (*_BEFORE, *_BUSY, *_ANYWHERE)
    if speech.takes is not None:
        yield REQUEST_SLOW
    if isinstance(needed, Verb):
        yield NOT_ALLOWED
    if "{project}" in way.path:
        yield PROJECT_UNKNOWN
    if speech.manner is Manner.CARRIED:
        yield UPGRADE_NEEDED


def _refusals(reasons: Iterable[Reason]) -> Object:
    by_status: dict[int, list[Reason]] = {}
    for each in reasons:
        by_status.setdefault(each.http, []).append(each)
    return {
        str(status): {
            "description": "\n".join(f"- `{each.code}`: {each.means}" for each in those),
            "content": {PROBLEM: {"schema": ref("Problem")}},
            **(_LATER if status == 429 else {}),
        }
        for status, those in sorted(by_status.items())
    }


def _problem() -> Object:
    """As `Refused.json` writes it."""
    text = {"type": "string"}
    where = {name: {"type": "integer" if name == "line" else "string"} for name in Where._fields}
    error = {
        "type": "object",
        "properties": {
            "reason": {**text, "description": "Its section in docs/reasons.md."},
            "detail": {**text, "description": "What is wrong."},
            "where": {"type": "object", "properties": where, "additionalProperties": False},
            "note": {**text, "description": "What else helps to know."},
            "next": {**text, "description": "What to type, or whom to ask."},
            "because": {
                "type": "object",
                "description": "Of a rule: what it says, what that is, whether it decided, and so of its `parts`.",
                "required": ["says", "decided"],
            },
        },
        "required": ["reason", "detail"],
    }
    return {
        "description": "All that is wrong, at once (RFC 9457). Its status is that of the first.",
        "type": "object",
        "properties": {
            "type": {**text, "pattern": "^urn:pincompute:reason:"},
            "title": text,
            "status": {"type": "integer"},
            "errors": {"type": "array", "minItems": 1, "items": error},
        },
        "required": ["type", "title", "status", "errors"],
    }
