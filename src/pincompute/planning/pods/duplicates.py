"""Finds duplicate names in a pod template.

Lists such as `env` and `volumeMounts` are merged by key. For a duplicate key, server-side apply answers with an
internal server error that does not name it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import DOCUMENT_INVALID
from pincompute.objects.content import Object


def duplicate_problems(template: Object, workload: str) -> Iterator[Problem]:
    """Problems of duplicate names. Validation has rejected those within a document, so that one is the platform's."""
    pod = template["spec"]
    containers = [*pod.get("containers", ()), *pod.get("initContainers", ())]
    yield from _duplicates(containers, "name", "container name '{}' is", workload)
    yield from _duplicates(pod.get("volumes", ()), "name", "volume name '{}' is", workload)
    for container in containers:
        name = container["name"]
        yield from _duplicates(container.get("env", ()), "name", f"variable {{}} in container '{name}' is", workload)
        yield from _duplicates(
            container.get("volumeMounts", ()), "mountPath", f"path {{}} in container '{name}' is", workload
        )


def _duplicates(entries: Any, key: str, text: str, workload: str) -> Iterator[Problem]:
    names = [each[key] for each in entries]
    for name in sorted({each for each in names if names.count(each) > 1}):
        yield Problem(
            DOCUMENT_INVALID,
            f"{text.format(name)} already used by the platform",
            Where(object=workload),
            next="choose another, or leave it out",
        )
