"""Project: an owner, members with roles, quota by tier and a review policy; it is a namespace of the same name."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from pincompute.api.noun import Noun, Spec
from pincompute.api.status import Status


class ProjectSpec(Spec, frozen=True, kw_only=True):
    """Whose it is, who may do what in it, and how much of a cluster it may use."""

    owner: Annotated[str, Meta(description="Who answers for it, such as team-ads.", min_length=1, max_length=128)]
    cost_centre: Annotated[str, Meta(description="Who pays for it, such as 4711.", max_length=63)] = ""


class Project(Noun, frozen=True, kw_only=True, rename=None):
    """An owner, members with roles, quota by tier and a review policy."""

    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("prj",)
    CLUSTER_WIDE: ClassVar[bool] = True

    spec: ProjectSpec
    status: Status = Status()
    kind: str = "Project"
