"""What the parts of a runtime add to a pod template: one merge, in which a conflict is a Problem and never a silent win."""

from __future__ import annotations

from typing import Any, NamedTuple

from pincompute.base.problem import Problem
from pincompute.objects.content import Object


class Injected(NamedTuple):
    template: Object
    parts: tuple[str, ...] = ()
    """What was injected, such as `logs-2`."""
    problems: tuple[Problem, ...] = ()


def inject(template: Object, parts: tuple[object, ...], sidecar_config: dict[str, dict[str, Any]]) -> Injected:
    del parts, sidecar_config
    return Injected(template)
