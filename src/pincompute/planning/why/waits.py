"""A copy that has a node and does not begin: its volumes, its image or what runs before it take long."""

from __future__ import annotations

from datetime import datetime

from pincompute.base.problem import Problem
from pincompute.base.reasons import IMAGE_SLOW, NOT_PREPARED, PREPARES_LONG
from pincompute.planning.snapshot import Container
from pincompute.planning.why.cause import Cause, Copy, Rank, Seen, Wait
from pincompute.planning.why.words import lasting

VOLUMES = 60.0
"""Seconds that volumes, certificate and network may take."""
LONG = 300.0
"""Seconds that an image may be on its way, or what runs before the program may run."""
_PREPARED = "PodReadyToStartContainers"
_BEGINNING = ("ContainerCreating", "PodInitializing")


def look(copy: Copy) -> Seen:
    if not copy.pod.says("PodScheduled") or not copy.pod.lives:
        return
    if not copy.pod.says(_PREPARED) and all(_begins(each) for each in copy.containers):
        yield from _unprepared(copy)
    elif running := _preparing(copy):
        yield from _prepares_long(copy, running)
    elif coming := next((each for each in copy.containers if _begins(each)), None):
        yield from _image(copy, coming)


def _unprepared(copy: Copy) -> Seen:
    age = copy.age(copy.since())
    if age < VOLUMES:
        yield Wait(VOLUMES - age)
        return
    parts = f"; the runtime gave it {' '.join(copy.pod.parts)}" if copy.pod.parts else ""
    problem = Problem(
        NOT_PREPARED,
        f"a {copy.owner.COPY[0]} has a node, and waits for its volumes, its certificate or its network",
        copy.where,
        f"for more than {lasting(VOLUMES)}{parts}; only Kubernetes' events say for which",
        copy.describe,
    )
    yield Cause(problem, Rank.SLOW)


def _preparing(copy: Copy) -> Container | None:
    """What runs before the program and has not ended; a part beside the program runs on when all is prepared."""
    if copy.pod.says("Initialized"):
        return None
    runs = [each for each in copy.pod.status.init_container_statuses if each.state.running]
    return next((each for each in runs if not each.ready), None)


def _prepares_long(copy: Copy, container: Container) -> Seen:
    running = container.state.running
    age = copy.age(running.started_at if running else None)
    if age < LONG:
        yield Wait(LONG - age)
        return
    what = f"{container.name}, which runs before the program, has not ended"
    yield copy.cause(
        container,
        Problem(PREPARES_LONG, what, note=f"it has run for more than {lasting(LONG)}", next=copy.logs(container)),
        Rank.SLOW,
    )


def _image(copy: Copy, container: Container) -> Seen:
    since = copy.since()
    # What has run before, and was given another image where it is, has waited since it ended and no longer.
    states = (*(each.state for each in copy.containers), container.last_state)
    ended = [each.terminated.finished_at for each in states if each.terminated]
    moments = [datetime.fromisoformat(each) for each in ended if each]
    age = copy.age(max([since, *moments]) if since else None)
    if age < LONG:
        yield Wait(LONG - age)
        return
    what = f"the image {container.image} is still being fetched"
    yield copy.cause(
        container, Problem(IMAGE_SLOW, what, note=f"for more than {lasting(LONG)}", next=copy.describe), Rank.SLOW
    )


def _begins(container: Container) -> bool:
    return container.state.waiting is not None and container.state.waiting.reason in _BEGINNING
