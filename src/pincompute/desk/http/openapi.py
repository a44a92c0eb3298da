"""The OpenAPI 3.1 document, made of the routes, their EndpointSpecs and permissions, and the reasons."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from http import HTTPStatus
from itertools import chain
from typing import Any

import msgspec
from aiohttp import web

from pincompute import __version__
from pincompute.admission.authorization import Permission
from pincompute.api.receipt import SubmissionReceipt
from pincompute.api.structs import struct_fields
from pincompute.api.whoami import SignIn
from pincompute.base.openid import DISCOVERY
from pincompute.base.problem import Where
from pincompute.base.reasons import (
    CLUSTER_REFUSED,
    CLUSTER_UNREACHABLE,
    DATABASE_FULL,
    DESK_BUSY,
    FORBIDDEN,
    INTERNAL,
    PROJECT_UNKNOWN,
    REQUEST_TIMEOUT,
    SIGN_IN_UNAVAILABLE,
    TOO_MANY_REQUESTS,
    UNAUTHENTICATED,
    WEBSOCKET_REQUIRED,
    Reason,
)
from pincompute.desk.authn.authenticator import SESSION_COOKIE
from pincompute.desk.http.auth import PUBLIC, handler_permission
from pincompute.desk.http.endpoint import (
    EVENT_STREAM,
    NDJSON,
    PART_YAML,
    PROBLEM_JSON,
    PROJECT_YAML,
    RUNTIME_YAML,
    WORKLOAD_YAML,
    WORKLOADS_YAML,
    EndpointSpec,
    ResponseMode,
    TextBody,
    endpoint_spec,
)
from pincompute.desk.http.path_parameters import PATH_PARAMETERS
from pincompute.desk.http.requests import MAX_IDEMPOTENCY_KEY_CHARS
from pincompute.desk.http.schemas import collect_schemas, field_descriptions, schema_ref
from pincompute.objects.content import Object

_JSON = "application/json"
_SCHEMA_NAMES = {
    WORKLOAD_YAML: "WorkloadDocument",
    WORKLOADS_YAML: "Document",
    PROJECT_YAML: "ProjectDocument",
    RUNTIME_YAML: "RuntimeDocument",
    PART_YAML: "PinterestSidecarDocument",
}
_DESCRIPTION = """\
The API of PinCompute for users and programs: deploy, inspect, change and debug workloads. A refused request is \
answered with `problem+json`, which has all problems at once: each with its reason, the place, and what to do next; \
docs/reasons.md has a section for every reason. Paths begin with the API version, except those of browser sessions: \
within a version, fields and endpoints are only added."""
_AUTHN_REASONS = (UNAUTHENTICATED, SIGN_IN_UNAVAILABLE)
_BUSY_REASONS = (TOO_MANY_REQUESTS, DESK_BUSY)
_RETRY_AFTER = {"headers": {"Retry-After": {"$ref": "#/components/headers/RetryAfter"}}}
_GENERAL_REASONS = (INTERNAL, CLUSTER_REFUSED, CLUSTER_UNREACHABLE, DATABASE_FULL)


def openapi_document(routes: Sequence[web.RouteDef], sign_in: SignIn) -> Object:
    """The whole document."""
    specs = [(route, spec) for route in routes if (spec := endpoint_spec(route.handler))]
    types = [type_ for _, spec in specs for type_ in _body_types(spec)]
    found = collect_schemas([*types, SubmissionReceipt])
    schemas = iter(found.requested)
    known = {id(type_): schema for type_, schema in zip([*types, SubmissionReceipt], schemas, strict=True)}
    paths: Object = {}
    for route, spec in specs:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, spec, known)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "PinCompute",
            "version": __version__,
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "The address that `pin status` shows."}],
        "security": [{name: []} for name in _security_schemes(sign_in)],
        "tags": [{"name": each} for each in sorted({_tag_of(route.path) for route, _ in specs})],
        "paths": paths,
        "components": {
            "securitySchemes": _security_schemes(sign_in),
            "schemas": {**found.components, "Problem": _problem_schema()},
            "headers": {
                "Submission": {"description": "ID of the submission.", "schema": {"type": "string"}},
                "RetryAfter": {"description": "Seconds after which to retry.", "schema": {"type": "integer"}},
            },
        },
    }


def _security_schemes(sign_in: SignIn) -> Object:
    known: Object = {
        "bearer": {
            "type": "http",
            "scheme": "bearer",
            "description": "Token of a login, of a service account with the audience of the desk, or the local token.",
        },
        "session": {
            "type": "apiKey",
            "in": "cookie",
            "name": SESSION_COOKIE,
            "description": "Cookie of a signed-in browser; a write needs the header `Pin-Csrf`, too.",
        },
        "certificate": {"type": "mutualTLS", "description": "Certificate of a program, with its SPIFFE ID."},
    }
    if sign_in.issuer:
        discovery = sign_in.issuer + DISCOVERY
        known["provider"] = {"type": "openIdConnect", "openIdConnectUrl": discovery, "description": "`pin login`"}
    return known


def _body_types(spec: EndpointSpec) -> Iterator[Any]:
    for each in (spec.request_body, spec.response):
        if each is not None and not isinstance(each, TextBody):
            yield each


def _operation(route: web.RouteDef, spec: EndpointSpec, known: dict[int, Object]) -> Object:
    permission = handler_permission(route.handler)
    name = route.handler.__name__.strip("_").replace("_", "-")
    tag = _tag_of(route.path)
    security: Object = {"security": []} if permission == PUBLIC else {}
    operation: Object = {
        "operationId": name if name == tag else f"{tag}-{name}",
        "tags": [tag],
        "summary": (route.handler.__doc__ or "").strip(),
        "description": _permission_text(permission),
        "parameters": [
            *_path_parameters(route.path),
            *_query_parameters(spec.query),
            *(_SUBMISSION_HEADERS if _is_recorded(spec) else ()),
        ],
        **security,
    }
    if spec.request_body is not None:
        operation["requestBody"] = _request_body(spec, known)
    reasons = {each.code: each for each in chain(spec.reasons, _general_reasons(route, spec, permission))}
    operation["responses"] = {**_responses(spec, known), **_problem_responses(reasons.values())}
    return operation


def _tag_of(path: str) -> str:
    """The resource of an endpoint: the first segment of its path below the project."""
    inner = path.removeprefix("/v1").removeprefix("/projects/{project}") or "/projects"
    return re.split(r"[/.]", inner)[1] or "openapi"


def _permission_text(permission: Permission | str) -> str:
    if isinstance(permission, Permission):
        target = "the platform" if permission is Permission.ADMINISTER else "the project"
        return f"Requires permission to {permission.value} {target}."
    return "Requires no authentication." if permission == PUBLIC else "Requires authentication."


def _is_recorded(spec: EndpointSpec) -> bool:
    return spec.mode in (ResponseMode.SUBMISSION, ResponseMode.SUBMISSION_SET)


def _path_parameters(path: str) -> Iterator[Object]:
    for name in re.findall(r"\{(\w+)\}", path):
        parameter = PATH_PARAMETERS[name]
        yield {
            "name": name, "in": "path", "required": True,
            "description": f"A {parameter.what}.", "schema": parameter.schema, "example": parameter.example,
        }  # fmt: skip


def _query_parameters(struct: Any) -> Iterator[Object]:
    """The query parameters."""
    if struct is None:
        return
    descriptions = field_descriptions(struct)
    for field in struct_fields(struct):
        (schema,), _ = msgspec.json.schema_components([field.type])
        if field.default is not msgspec.NODEFAULT and field.default not in ("", None):
            schema = {**schema, "default": msgspec.to_builtins(field.default)}
        # An absent parameter is absent, not null.
        kinds = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
        schema = {key: value for key, value in schema.items() if key != "anyOf"} | (kinds[0] if kinds else {})
        yield {
            "name": field.encode_name,
            "in": "query",
            "description": descriptions.get(field.name, ""),
            "schema": schema,
        }


_SUBMISSION_HEADERS = (
    {
        "name": "Idempotency-Key",
        "in": "header",
        "description": "A request that is repeated under the same key is not executed twice.",
        "schema": {"type": "string", "maxLength": MAX_IDEMPOTENCY_KEY_CHARS},
    },
    {
        "name": "Prefer",
        "in": "header",
        "description": "`respond-async`: respond as soon as the submission is recorded.",
        "schema": {"type": "string"},
    },
)


def _request_body(spec: EndpointSpec, known: dict[int, Object]) -> Object:
    example = spec.example
    if isinstance(spec.request_body, TextBody):
        name = _SCHEMA_NAMES.get(spec.request_body)
        schema = schema_ref(name) if name else {"type": "string", "format": "binary"}
        media, words = spec.request_body.media_type, spec.request_body.description
    else:
        schema, media, words = known[id(spec.request_body)], _JSON, ""
        example = msgspec.to_builtins(example)
    content = {media: {"schema": schema, "example": example}}
    return {"required": True, "content": content, **({"description": words} if words else {})}


def _responses(spec: EndpointSpec, known: dict[int, Object]) -> Object:
    done: Object = {"description": HTTPStatus(spec.status).phrase}
    if isinstance(spec.response, TextBody):
        done["content"] = {
            spec.response.media_type: {"schema": {"type": "string", "description": spec.response.description}}
        }
    elif spec.mode is ResponseMode.STREAM:
        done["description"] = (
            "One JSON document a line, as they come. An error during the stream is the last line, as a problem."
        )
        # `itemSchema` exists from OpenAPI 3.2 on.
        done["content"] = {NDJSON: {"schema": {"type": "string"}, "x-itemSchema": known[id(spec.response)]}}
    elif spec.mode is ResponseMode.EVENTS:
        done["description"] = (
            "Server-sent events, each with an `id`, its name in `event`, and in `data` the field of that name as JSON. "
            "The header `Last-Event-ID` continues a stream that was interrupted."
        )
        done["content"] = {EVENT_STREAM: {"schema": {"type": "string"}, "x-itemSchema": known[id(spec.response)]}}
    elif spec.mode is ResponseMode.WEBSOCKET:
        done["description"] = "A websocket: binary messages are relayed between the client and the replica."
    elif spec.response is not None:
        done["content"] = {_JSON: {"schema": known[id(spec.response)]}}
    found: Object = {str(spec.status): done}
    if _is_recorded(spec):
        one = spec.mode is ResponseMode.SUBMISSION
        if one:
            done["headers"] = {"Submission": {"$ref": "#/components/headers/Submission"}}
        words = "Recorded, and not delivered yet: repeat the request under the same key, or get `url`."
        receipt = known[id(SubmissionReceipt if one else spec.response)]
        found["202"] = {"description": words, "content": {_JSON: {"schema": receipt}}}
    return found


def _general_reasons(route: web.RouteDef, spec: EndpointSpec, permission: Permission | str) -> Iterator[Reason]:
    """Reasons that do not depend on what is schemas for."""
    if permission == PUBLIC:
        return
    yield from (*_AUTHN_REASONS, *_BUSY_REASONS, *_GENERAL_REASONS)
    if spec.request_body is not None:
        yield REQUEST_TIMEOUT
    if isinstance(permission, Permission):
        yield FORBIDDEN
    if "{project}" in route.path:
        yield PROJECT_UNKNOWN
    if spec.mode is ResponseMode.WEBSOCKET:
        yield WEBSOCKET_REQUIRED


def _problem_responses(reasons: Iterable[Reason]) -> Object:
    by_status: dict[int, list[Reason]] = {}
    for each in reasons:
        by_status.setdefault(each.http_status, []).append(each)
    return {
        str(status): {
            "description": "\n".join(f"- `{each.code}`: {each.meaning}" for each in same_status),
            "content": {PROBLEM_JSON: {"schema": schema_ref("Problem")}},
            **(_RETRY_AFTER if status == 429 else {}),
        }
        for status, same_status in sorted(by_status.items())
    }


def _problem_schema() -> Object:
    """The schema of what `Refused.json` returns."""
    text = {"type": "string"}
    where = {name: {"type": "integer" if name == "line" else "string"} for name in Where._fields}
    error = {
        "type": "object",
        "properties": {
            "reason": {**text, "description": "Its section in docs/reasons.md."},
            "detail": {**text, "description": "What is wrong."},
            "where": {"type": "object", "properties": where, "additionalProperties": False},
            "note": {**text, "description": "Further information."},
            "next": {**text, "description": "Command to type, or team to ask."},
            "rule": {
                "type": "object",
                "description": "A policy rule: its expression, value, whether it decided, and the same of its `parts`.",
                "required": ["expression", "decided"],
            },
        },
        "required": ["reason", "detail"],
    }
    return {
        "description": "All problems at once (RFC 9457). The status is that of the first.",
        "type": "object",
        "properties": {
            "type": {**text, "pattern": "^urn:pincompute:reason:"},
            "title": text,
            "status": {"type": "integer"},
            "errors": {"type": "array", "minItems": 1, "items": error},
        },
        "required": ["type", "title", "status", "errors"],
    }
