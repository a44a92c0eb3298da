"""Pods with containers that could not fetch configuration bundles: no store responds, or it does not have them."""

from __future__ import annotations

from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import CONFIG_MISSING, CONFIG_REJECTED
from pincompute.objects.config_bundle import MISSING_MESSAGE, REJECTED_MESSAGE
from pincompute.planning.diagnosis.cause import Cause, PodContext, Rank
from pincompute.planning.diagnosis.excerpts import last_line
from pincompute.planning.observed_pods import ContainerStatus


def config_cause(context: PodContext, container: ContainerStatus, message: str) -> Cause | None:
    """The cause in the last message of a container that fetches bundles; None for any other container."""
    line = last_line(message)
    if not context.owner.spec.config or not line.startswith((MISSING_MESSAGE, REJECTED_MESSAGE)):
        return None
    where = Where(object=f"{context.where} container {container.name}")
    detail = line.partition(" ")[2].partition(" ")[2]
    if line.startswith(MISSING_MESSAGE):
        what = f"a {context.replica} waits for its configuration bundles"
        problem = Problem(CONFIG_MISSING, what, where, detail, "pin status")
        return Cause(problem, Rank.TRANSIENT, container=container.name)
    what = f"a {context.replica} cannot have its configuration bundles"
    problem = Problem(CONFIG_REJECTED, what, where, detail, "pin deploy FILE, which determines their versions again")
    return Cause(problem, container=container.name)
