"""The document of a deployed workload: a deploy of it changes nothing."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from pincompute.api.documents import read_documents
from pincompute.api.kinds import WORKLOADS
from pincompute.api.validation import parse_resource
from pincompute.api.workload import Workload
from pincompute.cli.yaml_writer import format_document
from pincompute.planning.edits import preserve_edits
from pincompute.planning.workload_document import workload_document

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = [each for each in sorted(EXAMPLES.rglob("*.yaml")) if "kustomize" not in each.parts]
WORKLOADS_IN_EXAMPLES = [
    workload
    for file in FILES
    for document in read_documents(file.read_text(), str(file))
    if document.content.get("kind") in WORKLOADS
    for workload in [parse_resource(document, "me")]
    if isinstance(workload, Workload)
]


def redeployed(stored: Workload) -> Workload:
    (document,) = read_documents(format_document(workload_document(stored)))
    parsed = parse_resource(document, stored.metadata.namespace)
    assert isinstance(parsed, Workload)
    return preserve_edits(stored, parsed)


def test_examples_are_of_every_kind() -> None:
    assert {each.kind for each in WORKLOADS_IN_EXAMPLES} == WORKLOADS.keys()


@pytest.mark.parametrize("workload", WORKLOADS_IN_EXAMPLES, ids=lambda each: f"{each.kind}-{each.metadata.name}")
def test_deploy_of_the_document_changes_nothing(workload: Workload) -> None:
    assert redeployed(workload).spec == workload.spec


@pytest.mark.parametrize("workload", WORKLOADS_IN_EXAMPLES, ids=lambda each: f"{each.kind}-{each.metadata.name}")
def test_deploy_of_the_document_keeps_what_commands_have_set(workload: Workload) -> None:
    changes = {"replicas": 7, "suspended": "ann: looking", "attempt": 2}
    fields = {field: value for field, value in changes.items() if hasattr(workload.spec, field)}
    edited = msgspec.structs.replace(workload, spec=msgspec.structs.replace(workload.spec, **fields))
    assert redeployed(edited).spec == edited.spec


def test_document_has_no_labels_of_the_platform() -> None:
    workload = WORKLOADS_IN_EXAMPLES[0]
    labels = {"team": "ads", "pinterest.com/project": "me", "app.kubernetes.io/name": "web"}
    metadata = msgspec.structs.replace(workload.metadata, labels=labels, annotations={"a.kubernetes.io/b": "c"})
    document = workload_document(msgspec.structs.replace(workload, metadata=metadata))
    assert document["metadata"] == {"name": workload.metadata.name, "labels": {"team": "ads"}}
