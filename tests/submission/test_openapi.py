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

from pincompute.api.documents import read
from pincompute.api.kinds import KINDS
from pincompute.api.names import API_VERSION
from pincompute.api.whoami import SignIn
from pincompute.submission.openapi import described
from pincompute.submission.page import page
from pincompute.submission.schemas import ref
from pincompute.submission.server import ways
from pincompute.submission.speech import speech_of

ROOT = Path(__file__).parents[2]
NOBODY = cast("Any", None)
WAYS = ways(NOBODY, NOBODY, SignIn())
DOCUMENT = described(WAYS, SignIn("https://people.example"))
OPERATIONS = [(method, path, each) for path, found in DOCUMENT["paths"].items() for method, each in found.items()]


@pytest.mark.parametrize("way", WAYS, ids=lambda each: f"{each.method} {each.path}")
def test_every_way_to_ask_says_what_it_takes_and_gives(way: web.RouteDef) -> None:
    speech = speech_of(way.handler)
    assert speech is not None, f"write @speaks(…) above {way.handler.__name__}: see submission/speech.py"
    assert (way.handler.__doc__ or "").strip().endswith("."), f"{way.handler.__name__} has no words of its own"
    assert (speech.takes is None) == (speech.example is None), "what is sent has an example"


def test_it_is_openapi_by_the_letter_and_its_schemas_are_schemas() -> None:
    OPENAPI_31_VALIDATOR.validate(DOCUMENT)
    for schema in DOCUMENT["components"]["schemas"].values():
        jsonschema_rs.meta.validate(schema)
    whole = msgspec.json.encode(DOCUMENT).decode()
    named = set(re.findall(r'"#/components/(\w+)/([\w.]+)"', whole))
    assert {(where, name) for where in ("schemas", "headers") for name in DOCUMENT["components"][where]} >= named


def test_every_way_is_there_once_and_has_a_name_of_its_own() -> None:
    assert {(method.upper(), path) for method, path, _ in OPERATIONS} == {(each.method, each.path) for each in WAYS}
    names = [each["operationId"] for *_, each in OPERATIONS]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch("[a-z]+(-[a-z]+)*", each) for each in names)


def test_what_is_sent_as_an_example_is_what_may_be_sent() -> None:
    root = {"components": DOCUMENT["components"]}
    for *_, each in OPERATIONS:
        for content in each.get("requestBody", {}).get("content", {}).values():
            said = yaml.safe_load(content["example"]) if isinstance(content["example"], str) else content["example"]
            jsonschema_rs.Draft202012Validator({**root, **content["schema"]}).validate(said)
        for parameter in each["parameters"]:
            if "example" in parameter:
                jsonschema_rs.Draft202012Validator(parameter["schema"]).validate(parameter["example"])


def test_every_example_of_a_kind_is_a_document_by_its_schema() -> None:
    """What people write by the examples, and what programs write by the description, is the same."""
    known = jsonschema_rs.Draft202012Validator({"components": DOCUMENT["components"], **ref("Document")})
    seen = 0
    for file in (ROOT / "examples").rglob("*.yaml"):
        for document in read(file.read_text()):
            if document.content["apiVersion"] == API_VERSION:
                known.validate(document.content)
                seen += 1
    assert seen > len(KINDS)


def test_who_needs_nobody_says_so_and_everybody_else_may_be_turned_away() -> None:
    for _, path, each in OPERATIONS:
        assert (each.get("security") == []) == ("401" not in each["responses"]) == ("429" not in each["responses"]), (
            path
        )
    assert [*DOCUMENT["components"]["securitySchemes"]] == ["bearer", "certificate", "provider"]
    assert [*described(WAYS, SignIn())["components"]["securitySchemes"]] == ["bearer", "certificate"]


def test_fields_have_the_words_that_stand_below_them() -> None:
    fields = DOCUMENT["components"]["schemas"]["Summary"]["properties"]
    assert fields["goal"]["description"] == "Ready, or Succeeded."
    (get,) = [each for *_, each in OPERATIONS if each["operationId"] == "workloads-logs"]
    (copy,) = [each for each in get["parameters"] if each["name"] == "copy"]
    assert copy["description"] == "Of one copy or task; of all where empty."


def test_the_page_has_every_way_every_type_and_no_link_that_leads_nowhere_or_away() -> None:
    told = page(DOCUMENT)
    anchors = re.findall(r' id="([^"]+)"', told)
    assert len(set(anchors)) == len(anchors)
    assert {each["operationId"] for *_, each in OPERATIONS} | set(DOCUMENT["components"]["schemas"]) < set(anchors)
    links = set(re.findall(r'href="([^"]+)"', told))
    assert links - {f"#{each}" for each in anchors} == {"openapi.json"}
    assert not re.search(r"<script|<link|<img|@import|url[(]| src=", told)


def test_what_is_said_stands_in_the_page_as_it_is_said() -> None:
    odd = {**DOCUMENT, "info": {**DOCUMENT["info"], "description": "<script>alert(1)</script>"}}
    assert "&lt;script&gt;alert(1)" in page(odd)


def test_the_table_of_the_docs_names_ways_that_are_there() -> None:
    rows = re.findall(r"^\| `([A-Z]+) (/v1/\S+)` \|", (ROOT / "docs" / "desk.md").read_text(), re.MULTILINE)
    letters = {"P": "{project}", "W": "{name}", "V": "{version}", "ID": "{id}"}
    named = {(method, "/".join(letters.get(word, word) for word in path.split("/"))) for method, path in rows}
    assert len(named) > 5
    assert named <= {(each.method, each.path) for each in WAYS}
