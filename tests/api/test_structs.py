"""JSON without default values."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pincompute.api.project import ProjectSpec
from pincompute.api.runtime import Roll
from pincompute.api.service import ServiceSpec
from pincompute.api.structs import without_defaults


@pytest.mark.parametrize(
    ("type_", "brief", "whole"),
    [
        (ServiceSpec, {"port": 80}, {"port": 80, "replicas": 1, "loadBalancer": {"path": "/", "healthCheck": {}}}),
        (Roll, {}, {"waves": [5, 25, 100]}),
        (ProjectSpec, {"owner": "a", "quota": {"on-demand": {}}}, {"owner": "a", "quota": {"on-demand": {"cpu": ""}}}),
        (
            ServiceSpec,
            {"port": 80, "environment": {"A": "1", "B": "2"}},
            {"port": 80, "environment": {"B": "2", "A": "1"}},
        ),
    ],
)
def test_removes_written_out_defaults(type_: Any, brief: Any, whole: Any) -> None:
    one, other = (without_defaults(msgspec.convert(each, type_)) for each in (brief, whole))
    assert msgspec.json.encode(one) == msgspec.json.encode(other)
    assert one == brief
