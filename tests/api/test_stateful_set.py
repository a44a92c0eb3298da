"""Validation of PinterestStatefulSet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from pincompute.api.documents import read_documents
from pincompute.api.stateful_set import PinterestStatefulSet, StorageClaim
from pincompute.api.validation import parse_resource
from pincompute.base.problem import Refused

ROOT = Path(__file__).parents[2]


def parsed_stateful_set(**spec: Any) -> PinterestStatefulSet:
    document = {
        "apiVersion": "pinterest.com/v1",
        "kind": "PinterestStatefulSet",
        "metadata": {"name": "db"},
        "spec": {"image": "db:1.2", "port": 5432, **spec},
    }
    workload = parse_resource(read_documents(yaml.safe_dump(document))[0], "me")
    assert isinstance(workload, PinterestStatefulSet)
    return workload


@pytest.mark.parametrize("file", ["examples/stateful-set.yaml", "examples/long/stateful-set.yaml"])
def test_accepts_examples(file: str) -> None:
    parse_resource(read_documents((ROOT / file).read_text(), file)[0], "me")


def test_storage_creates_one_claim() -> None:
    assert parsed_stateful_set(storage="10Gi").spec.all_claims == {"data": StorageClaim(size="10Gi", path="/data")}
    assert parsed_stateful_set().spec.all_claims == {}


def test_pod_names_fit_limits() -> None:
    """`<name>-<ordinal>` is a host name, and `<name>-<hash of ten characters>` a label value."""
    assert PinterestStatefulSet.MAX_NAME_LENGTH + len("-20000") <= 63
    assert PinterestStatefulSet.MAX_NAME_LENGTH + 1 + 10 <= 63


LOG = {"size": "1Gi", "path": "/log"}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"storage": "10Gi", "claims": {"data": LOG}}, "storage already creates the claim 'data'"),
        ({"storage": "10Gi", "storagePath": "/log/", "claims": {"log": LOG}}, "/log is already used by storage"),
        ({"claims": {"a": LOG, "b": {**LOG}}}, "/log is already used by the claim 'a'"),
        ({"claims": {"Log": LOG}}, "invalid claim name 'Log'"),
        ({"claims": {"l" * 31: LOG}}, "invalid claim name"),
        ({"claims": {"log": {**LOG, "size": "0Gi"}}}, "size is 0Gi: it must be larger than 0"),
        ({"storage": "0"}, "storage is 0: the size must be larger than 0"),
        ({"storage": "ten"}, "a quantity such as 2, 500m or 512Mi"),
        ({"claims": {"log": {"size": "1Gi"}}}, "path is missing"),
        ({"claims": {"log": {**LOG, "acces": "x"}}}, "did you mean access?"),
        (
            {"configuration": {"a": "b"}, "configurationPath": "/log", "claims": {"log": LOG}},
            "already used by configuration",
        ),
        (
            {"claims": {"log": LOG}, "template": {"spec": {"volumes": [{"name": "log"}]}}},
            "the template already has a volume 'log'",
        ),
        (
            {
                "claims": {"log": LOG},
                "template": {"spec": {"containers": [{"name": "db", "volumeMounts": [{"mountPath": "/log"}]}]}},
            },
            "already used by a mount of the template",
        ),
        ({"replicas": 2, "rollout": {"partition": 3}}, "partition is 3, but there are only 2 replicas"),
        ({"ports": [{"name": "main", "port": 1}]}, "duplicate port name 'main'"),
        ({"ports": [{"name": "x", "port": 5432}]}, "port 5432 is already used by 'main'"),
        ({"template": {"spec": [], "metadata": 1}, "claims": {"log": LOG}}, "template"),
    ],
)
def test_rejects_invalid_stateful_set_spec(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(Refused) as refused:
        parsed_stateful_set(**spec)
    assert message in refused.value.text()
