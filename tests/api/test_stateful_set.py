"""What a PinterestStatefulSet may say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from pincompute.api.admission import admit
from pincompute.api.documents import read
from pincompute.api.stateful_set import Claim, PinterestStatefulSet
from pincompute.base.problem import Refused

ROOT = Path(__file__).parents[2]


def admitted(**spec: Any) -> PinterestStatefulSet:
    document = {
        "apiVersion": "pinterest.com/v1",
        "kind": "PinterestStatefulSet",
        "metadata": {"name": "db"},
        "spec": {"image": "db:1.2", "port": 5432, **spec},
    }
    workload = admit(read(yaml.safe_dump(document))[0], "me")
    assert isinstance(workload, PinterestStatefulSet)
    return workload


@pytest.mark.parametrize("file", ["examples/stateful-set.yaml", "examples/long/stateful-set.yaml"])
def test_the_examples(file: str) -> None:
    admit(read((ROOT / file).read_text(), file)[0], "me")


def test_the_short_form_is_one_claim() -> None:
    assert admitted(storage="10Gi").spec.all_claims == {"data": Claim(size="10Gi", path="/data")}
    assert admitted().spec.all_claims == {}


def test_pods_and_their_labels_have_names_that_fit() -> None:
    """`<name>-<ordinal>` is a host name, and `<name>-<ten letters>` a label."""
    assert PinterestStatefulSet.MAX_NAME + len("-20000") <= 63
    assert PinterestStatefulSet.MAX_NAME + 1 + 10 <= 63


LOG = {"size": "1Gi", "path": "/log"}


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"storage": "10Gi", "claims": {"data": LOG}}, "storage is the claim 'data' already"),
        ({"storage": "10Gi", "storagePath": "/log/", "claims": {"log": LOG}}, "/log is the folder of storage already"),
        ({"claims": {"a": LOG, "b": {**LOG}}}, "/log is the folder of the claim 'a' already"),
        ({"claims": {"Log": LOG}}, "no claim can be called 'Log'"),
        ({"claims": {"l" * 31: LOG}}, "no claim can be called"),
        ({"claims": {"log": {**LOG, "size": "0Gi"}}}, "a claim of 0Gi holds nothing"),
        ({"storage": "0"}, "a claim of 0 holds nothing"),
        ({"storage": "ten"}, "an amount such as 2, 500m or 512Mi"),
        ({"claims": {"log": {"size": "1Gi"}}}, "path is missing"),
        ({"claims": {"log": {**LOG, "acces": "x"}}}, "did you mean access?"),
        (
            {"configuration": {"a": "b"}, "configurationPath": "/log", "claims": {"log": LOG}},
            "the folder of configuration",
        ),
        ({"claims": {"log": LOG}, "template": {"spec": {"volumes": [{"name": "log"}]}}}, "a volume of the template"),
        (
            {
                "claims": {"log": LOG},
                "template": {"spec": {"containers": [{"name": "db", "volumeMounts": [{"mountPath": "/log"}]}]}},
            },
            "the folder of a mount of the template",
        ),
        ({"replicas": 2, "rollout": {"partition": 3}}, "3 copies are held back, and there are only 2"),
        ({"ports": [{"name": "main", "port": 1}]}, "two ports are called 'main'"),
        ({"ports": [{"name": "x", "port": 5432}]}, "port 5432 is that of 'main' already"),
        ({"template": {"spec": [], "metadata": 1}, "claims": {"log": LOG}}, "template"),
    ],
)
def test_what_cannot_be(spec: dict[str, Any], told: str) -> None:
    with pytest.raises(Refused) as refused:
        admitted(**spec)
    assert told in refused.value.text()
