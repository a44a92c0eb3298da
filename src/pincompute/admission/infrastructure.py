"""Decides whether a runtime or a runtime part may be deployed over an existing one. Pure."""

from __future__ import annotations

from pincompute.api.runtime import Runtime
from pincompute.api.sidecar import PinterestSidecar
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import CANNOT_CHANGE

Infrastructure = Runtime | PinterestSidecar
"""What administrators deploy for all projects. Each is a version, so that it is created and never changed."""
INFRASTRUCTURE_KINDS: dict[str, type[Infrastructure]] = {each.__name__: each for each in (Runtime, PinterestSidecar)}


def is_unchanged(before: Infrastructure, after: Infrastructure) -> bool:
    """Whether a document asks for what exists. The roll of a runtime is left to the commands that follow it."""
    if isinstance(before, Runtime) and isinstance(after, Runtime):
        return before.spec.parts == after.spec.parts and after.spec.roll in (None, before.spec.roll)
    return before.spec == after.spec


def check_infrastructure(before: Infrastructure | None, after: Infrastructure) -> Problem | None:
    """Why a document cannot be deployed: this version exists, with another content."""
    if before is None or is_unchanged(before, after):
        return None
    name = after.metadata.name
    if isinstance(after, PinterestSidecar):
        what = f"runtime part {name} is immutable, and exists with another content"
        return Problem(CANNOT_CHANGE, what, Where(object=f"part {name}"), next=f"name it {_next_version(name)}")
    where = Where(object=f"runtime {name}")
    if isinstance(before, Runtime) and before.spec.parts == after.spec.parts:
        what = f"the roll of runtime {name} is not changed by its document"
        return Problem(CANNOT_CHANGE, what, where, next=f"pin runtime roll {name}, or remove roll from the document")
    what = f"runtime {name} is immutable, and exists with other parts"
    return Problem(CANNOT_CHANGE, what, where, next=f'name: "{int(name) + 1}"')


def _next_version(name: str) -> str:
    part, _, version = name.rpartition("-")
    return f"{part}-{int(version) + 1}"
