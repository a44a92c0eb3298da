"""What is said of the desk's API: every way to ask is described, and by what is there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

import jsonschema_rs
import msgspec
import pytest
import yaml
from aiohttp import web
from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR

from pincompute.api.documents import read_documents
from pincompute.api.kinds import KINDS
from pincompute.api.names import API_VERSION
from pincompute.api.whoami import SignIn
from pincompute.desk.http.api_page import render_page
from pincompute.desk.http.endpoint import endpoint_spec
from pincompute.desk.http.openapi import openapi_document
from pincompute.desk.http.schemas import schema_ref
from pincompute.desk.http.server import route_table

ROOT = Path(__file__).parents[3]
NO_DESK = cast("Any", None)
ROUTES = route_table(NO_DESK, SignIn())
DOCUMENT = openapi_document(ROUTES, SignIn("https://people.example"))
OPERATIONS = [(method, path, each) for path, found in DOCUMENT["paths"].items() for method, each in found.items()]


@pytest.mark.parametrize("route", ROUTES, ids=lambda each: f"{each.method} {each.path}")
def test_every_route_has_an_endpoint_spec(route: web.RouteDef) -> None:
    spec = endpoint_spec(route.handler)
    assert spec is not None, f"{route.handler.__name__} lacks @endpoint: see desk/http/endpoint.py"
    assert (route.handler.__doc__ or "").strip().endswith("."), f"{route.handler.__name__} has no docstring"
    assert (spec.request_body is None) == (spec.example is None), "a request body needs an example"


def test_document_is_valid_openapi() -> None:
    OPENAPI_31_VALIDATOR.validate(DOCUMENT)
    for schema in DOCUMENT["components"]["schemas"].values():
        jsonschema_rs.meta.validate(schema)
    whole = msgspec.json.encode(DOCUMENT).decode()
    named = set(re.findall(r'"#/components/(\w+)/([\w.]+)"', whole))
    assert {(where, name) for where in ("schemas", "headers") for name in DOCUMENT["components"][where]} >= named


def test_routes_and_operation_ids_are_unique() -> None:
    assert {(method.upper(), path) for method, path, _ in OPERATIONS} == {(each.method, each.path) for each in ROUTES}
    names = [each["operationId"] for *_, each in OPERATIONS]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch("[a-z]+(-[a-z]+)*", each) for each in names)


def test_request_examples_match_their_schemas() -> None:
    root = {"components": DOCUMENT["components"]}
    for *_, each in OPERATIONS:
        for content in each.get("requestBody", {}).get("content", {}).values():
            said = yaml.safe_load(content["example"]) if isinstance(content["example"], str) else content["example"]
            jsonschema_rs.Draft202012Validator({**root, **content["schema"]}).validate(said)
        for parameter in each["parameters"]:
            if "example" in parameter:
                jsonschema_rs.Draft202012Validator(parameter["schema"]).validate(parameter["example"])


def test_example_files_match_their_schemas() -> None:
    """Users write files like the examples, programs write requests by the schemas: both must be the same."""
    known = jsonschema_rs.Draft202012Validator({"components": DOCUMENT["components"], **schema_ref("Document")})
    seen = 0
    for file in (ROOT / "examples").rglob("*.yaml"):
        for document in read_documents(file.read_text()):
            if document.content["apiVersion"] == API_VERSION:
                known.validate(document.content)
                seen += 1
    assert seen > len(KINDS)


def test_public_operations_need_no_security_and_others_may_be_rejected() -> None:
    for _, path, each in OPERATIONS:
        if path.startswith("/session") and each.get("security") == []:
            # A sign-in has no credentials yet, and is refused by the code that it brings.
            continue
        assert (each.get("security") == []) == ("401" not in each["responses"]) == ("429" not in each["responses"]), (
            path
        )
    assert [*DOCUMENT["components"]["securitySchemes"]] == ["bearer", "session", "certificate", "provider"]
    assert [*openapi_document(ROUTES, SignIn())["components"]["securitySchemes"]] == [
        "bearer",
        "session",
        "certificate",
    ]


def test_field_docstrings_become_descriptions() -> None:
    fields = DOCUMENT["components"]["schemas"]["WorkloadSummary"]["properties"]
    assert fields["goal"]["description"] == "Condition type of the goal: Ready or Succeeded."
    (get,) = [each for *_, each in OPERATIONS if each["operationId"] == "workloads-logs"]
    (replica,) = [each for each in get["parameters"] if each["name"] == "replica"]
    assert replica["description"] == "Replica or task; empty for all."


def test_page_has_every_operation_and_type_and_no_broken_or_external_link() -> None:
    page = render_page(DOCUMENT)
    anchors = re.findall(r' id="([^"]+)"', page)
    assert len(set(anchors)) == len(anchors)
    assert {each["operationId"] for *_, each in OPERATIONS} | set(DOCUMENT["components"]["schemas"]) < set(anchors)
    links = set(re.findall(r'href="([^"]+)"', page))
    assert links - {f"#{each}" for each in anchors} == {"openapi.json"}
    assert not re.search(r"<script|<link|<img|@import|url[(]| src=", page)


def test_page_escapes_text() -> None:
    odd = {**DOCUMENT, "info": {**DOCUMENT["info"], "description": "<script>alert(1)</script>"}}
    assert "&lt;script&gt;alert(1)" in render_page(odd)


def test_paths_in_the_docs_exist() -> None:
    rows = re.findall(r"^\| `([A-Z]+) (/v1/\S+)` \|", (ROOT / "docs" / "desk.md").read_text(), re.MULTILINE)
    letters = {"P": "{project}", "W": "{name}", "V": "{version}", "ID": "{id}", "N": "{number}"}
    named = {(method, "/".join(letters.get(word, word) for word in path.split("/"))) for method, path in rows}
    assert len(named) > 5
    assert named <= {(each.method, each.path) for each in ROUTES}
