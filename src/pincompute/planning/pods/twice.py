"""What stands twice in a pod that may stand there once: Kubernetes answers it with an error of its own server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import DOCUMENT_INVALID
from pincompute.objects.content import Object


def twice(template: Object, place: str) -> Iterator[Problem]:
    """The document alone does not say such a thing twice: the platform adds what is there already."""
    pod = template["spec"]
    containers = [*pod.get("containers", ()), *pod.get("initContainers", ())]
    yield from _told(containers, "name", "the container name '{}' is taken", place)
    yield from _told(pod.get("volumes", ()), "name", "the volume name '{}' is taken", place)
    for each in containers:
        name = each["name"]
        yield from _told(each.get("env", ()), "name", f"the variable {{}} of container '{name}' is set", place)
        yield from _told(
            each.get("volumeMounts", ()), "mountPath", f"the path {{}} in container '{name}' is taken", place
        )


def _told(entries: Any, key: str, words: str, place: str) -> Iterator[Problem]:
    names = [each[key] for each in entries]
    for name in sorted({each for each in names if names.count(each) > 1}):
        yield Problem(
            DOCUMENT_INVALID,
            f"{words.format(name)} by the platform already",
            Where(object=place),
            next="choose another, or leave it out",
        )
