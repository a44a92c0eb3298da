"""Duplicate names in a pod template, of the workload and the platform."""

from __future__ import annotations

from typing import Any

import pytest

from pincompute.api.documents import Document
from pincompute.api.validation import parse_resource
from snapshot_strategies import new_snapshot, plan_snapshot, plan_steps
from strategies import as_stored


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"environment": {"PORT": "1"}}, "variable PORT in container 'web' is already used by the platform"),
        (
            {"template": {"spec": {"containers": [{"name": "b", "image": "b:1", "env": [{"name": "PIN_KIND"}]}]}}},
            "variable PIN_KIND in container 'b' is already used by the platform",
        ),
        (
            {"configuration": {"a": ""}, "template": {"spec": {"volumes": [{"name": "configuration"}]}}},
            "volume name 'configuration' is already used by the platform",
        ),
        (
            {"template": {"spec": {"initContainers": [{"name": "web", "image": "web:1"}]}}},
            "container name 'web' is already used by the platform",
        ),
    ],
)
def test_reports_duplicate_and_takes_no_step(spec: dict[str, Any], message: str) -> None:
    content = {
        "apiVersion": "pinterest.com/v1",
        "kind": "PinterestService",
        "metadata": {"name": "web"},
        "spec": {"image": "web:1", "port": 8080, **spec},
    }
    snapshot = new_snapshot(as_stored(parse_resource(Document(content, "web.yaml", {}), "me")))
    planned = plan_snapshot(snapshot)
    assert [problem.what for problem in planned.problems] == [message]
    assert plan_steps(snapshot, planned) == ()
