"""Edits of a workload as one command that can be typed: `pin edit NAME --set FIELD=VALUE --remove FIELD`."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping
from types import NoneType

from pincompute.api.documents import parse_scalar
from pincompute.api.workload import Workload
from pincompute.objects.content import Object
from pincompute.objects.field_edits import field_path

EDIT_COMMAND = "pin edit "


def edit_command(owner: Workload, settings: Mapping[str, str | int] | None = None, removals: Iterable[str] = ()) -> str:
    """The command that removes and sets these fields of the file; empty if there are none."""
    words = [word for path in dict.fromkeys(removals) for word in ("--remove", path)]
    words += [word for path, value in (settings or {}).items() for word in ("--set", f"{path}={_scalar(value)}")]
    return shlex.join(["pin", "edit", owner.metadata.name, *words]) if words else ""


def _scalar(value: str | int) -> str:
    """Text that would be read as another type, such as the label value `true`, is quoted."""
    if isinstance(value, str) and (isinstance(parse_scalar(value), (bool, int, NoneType)) or value[:1] in "\"'[{"):
        return json.dumps(value)
    return str(value)


def pod_path(*steps: str) -> str:
    """The path of a field of the pod in spec.template."""
    return field_path("template", "spec", *steps)


def container_path(owner: Workload, name: str, *steps: str) -> str:
    """The path of a field of a container in spec.template."""
    is_init = any(each.get("name") == name for each in pod_spec(owner).get("initContainers", ()))
    return pod_path("initContainers" if is_init else "containers", name, *steps)


def pod_spec(owner: Workload) -> Object:
    """The pod of spec.template, as the file has it."""
    spec: Object = owner.spec.template.get("spec", {})
    return spec


def pod_removals(owner: Workload, paths: Iterable[tuple[str, ...]]) -> list[str]:
    """Paths of fields of the pod in the file; of a volume also those of its mounts."""
    found: list[str] = []
    for path in paths:
        if path[0] == "volumes":
            found += volume_removals(owner, path[1])
        elif path[0] in {"containers", "initContainers"}:
            found.append(container_path(owner, *path[1:]))
        else:
            found.append(pod_path(*path))
    return list(dict.fromkeys(found))


def volume_removals(owner: Workload, volume: str) -> list[str]:
    """Paths of a volume of the file and of its mounts, without which the file would be refused."""
    containers = (*pod_spec(owner).get("containers", ()), *pod_spec(owner).get("initContainers", ()))
    mounts = [
        container_path(owner, each["name"], "volumeMounts", volume)
        for each in containers
        if any(mount.get("name") == volume for mount in each.get("volumeMounts", ()))
    ]
    return [*mounts, pod_path("volumes", volume)]
