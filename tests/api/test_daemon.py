"""Validation of PinterestDaemon."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from pincompute.api.daemon import PinterestDaemon
from pincompute.api.documents import read_documents
from pincompute.api.validation import parse_resource
from pincompute.api.workload import Tier
from pincompute.base.problem import Refused

ROOT = Path(__file__).parents[2]


def parsed_daemon(**spec: Any) -> PinterestDaemon:
    document = {
        "apiVersion": "pinterest.com/v1",
        "kind": "PinterestDaemon",
        "metadata": {"name": "exporter"},
        "spec": {"image": "exporter:2", **spec},
    }
    workload = parse_resource(read_documents(yaml.safe_dump(document))[0], "infrastructure")
    assert isinstance(workload, PinterestDaemon)
    return workload


@pytest.mark.parametrize("file", ["examples/daemon.yaml", "examples/long/daemon.yaml"])
def test_accepts_examples(file: str) -> None:
    parse_resource(read_documents((ROOT / file).read_text(), file)[0], "infrastructure")


def test_tier_is_always_reserved() -> None:
    assert parsed_daemon().spec.tier is Tier.RESERVED
    assert parsed_daemon(tier="reserved") == parsed_daemon()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"tier": "preemptible"}, "the tier of a daemon is always reserved"),
        ({"wholeNode": True}, "a daemon cannot have a node for itself"),
        ({"rollout": {"waves": [50, 10, 100]}}, "waves are [50, 10, 100]"),
        ({"rollout": {"waves": [5, 50]}}, "end with 100"),
        ({"rollout": {"waves": []}}, "waves are []"),
        ({"rollout": {"unavailable": 0}}, "unavailable is 0"),
        ({"rollout": {"unavailable": "0%"}}, "unavailable is 0"),
        (
            {"nodes": {"a": "b"}, "template": {"spec": {"nodeSelector": {"a": "c"}}}},
            "a is set here and in the template",
        ),
        ({"nodes": {"a": "b"}, "template": {"spec": {"nodeSelector": []}}}, "nodeSelector"),
    ],
)
def test_rejects_invalid_daemon_spec(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(Refused) as refused:
        parsed_daemon(**spec)
    assert message in refused.value.text()
