"""What a PinterestDaemon may say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from pincompute.api.admission import admit
from pincompute.api.daemon import PinterestDaemon
from pincompute.api.documents import read
from pincompute.api.workload import Tier
from pincompute.base.problem import Refused

ROOT = Path(__file__).parents[2]


def admitted(**spec: Any) -> PinterestDaemon:
    document = {
        "apiVersion": "pinterest.com/v1",
        "kind": "PinterestDaemon",
        "metadata": {"name": "exporter"},
        "spec": {"image": "exporter:2", **spec},
    }
    workload = admit(read(yaml.safe_dump(document))[0], "infrastructure")
    assert isinstance(workload, PinterestDaemon)
    return workload


@pytest.mark.parametrize("file", ["examples/daemon.yaml", "examples/long/daemon.yaml"])
def test_the_examples(file: str) -> None:
    admit(read((ROOT / file).read_text(), file)[0], "infrastructure")


def test_it_has_no_tier_to_choose() -> None:
    assert admitted().spec.tier is Tier.RESERVED
    assert admitted(tier="reserved") == admitted()


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"tier": "preemptible"}, "a daemon goes before every tier"),
        ({"wholeNode": True}, "a daemon shares its node with all other work"),
        ({"rollout": {"waves": [50, 10, 100]}}, "the waves are [50, 10, 100]"),
        ({"rollout": {"waves": [5, 50]}}, "the last 100"),
        ({"rollout": {"waves": []}}, "the waves are []"),
        ({"rollout": {"unavailable": 0}}, "unavailable is 0"),
        ({"rollout": {"unavailable": "0%"}}, "unavailable is 0"),
        (
            {"nodes": {"a": "b"}, "template": {"spec": {"nodeSelector": {"a": "c"}}}},
            "a stands here and in the template",
        ),
        ({"nodes": {"a": "b"}, "template": {"spec": {"nodeSelector": []}}}, "nodeSelector"),
    ],
)
def test_what_cannot_be(spec: dict[str, Any], told: str) -> None:
    with pytest.raises(Refused) as refused:
        admitted(**spec)
    assert told in refused.value.text()
