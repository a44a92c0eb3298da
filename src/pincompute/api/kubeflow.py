"""What Kubeflow's kinds can carry: a field of a pod that is younger than they are is dropped by them without a word."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pincompute.api.kubeflow_fields import STRUCTURES
from pincompute.api.noun import Path

_KNOWN: dict[str, dict[str, str]] = {
    structure: {name: inner for name, _, inner in (each.partition("=") for each in fields.split())}
    for structure, fields in STRUCTURES.items()
}


def dropped(template: Any) -> Iterator[Path]:
    """The place of each field that would be lost."""
    return _dropped(template, "template", ())


def _dropped(value: Any, structure: str, path: Path) -> Iterator[Path]:
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield from _dropped(each, structure, (*path, index))
    elif isinstance(value, dict):
        known = _KNOWN[structure]
        for name, each in value.items():
            if name not in known:
                yield (*path, name)
            elif known[name]:
                yield from _dropped(each, known[name], (*path, name))


def spelled(path: Path) -> str:
    """`spec.containers[0].image`."""
    text = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in path)
    return text.removeprefix(".")
