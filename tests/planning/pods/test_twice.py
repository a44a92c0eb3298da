"""What a pod can have only once, said by the workload and by the platform."""

from __future__ import annotations

from typing import Any

import pytest

from pincompute.api.admission import admit
from pincompute.api.documents import Document
from strategies import written
from worlds import alone, plan, steps


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"environment": {"PORT": "1"}}, "the variable PORT of container 'web' is set by the platform already"),
        (
            {"template": {"spec": {"containers": [{"name": "b", "image": "b:1", "env": [{"name": "PIN_KIND"}]}]}}},
            "the variable PIN_KIND of container 'b' is set by the platform already",
        ),
        (
            {"configuration": {"a": ""}, "template": {"spec": {"volumes": [{"name": "configuration"}]}}},
            "the volume name 'configuration' is taken by the platform already",
        ),
        (
            {"template": {"spec": {"initContainers": [{"name": "web", "image": "web:1"}]}}},
            "the container name 'web' is taken by the platform already",
        ),
    ],
)
def test_it_is_told_and_nothing_is_made(spec: dict[str, Any], told: str) -> None:
    content = {
        "apiVersion": "pinterest.com/v1",
        "kind": "PinterestService",
        "metadata": {"name": "web"},
        "spec": {"image": "web:1", "port": 8080, **spec},
    }
    snapshot = alone(written(admit(Document(content, "web.yaml", {}), "me")))
    planned = plan(snapshot)
    assert [problem.what for problem in planned.problems] == [told]
    assert steps(snapshot, planned) == ()
