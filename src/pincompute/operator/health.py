"""Liveness and readiness of the operator.

Liveness fails only for faults that a restart cures: a watch or a pass that hangs. An API server that is down, or a
permission that is missing, is reported but does not fail liveness, because restarting the operator would not help.
"""

from __future__ import annotations

from collections.abc import Iterator

from pincompute.operator.manager import ControllerManager

MAX_CACHE_AGE_S = 300.0
"""Silence of the API server, bookmarks included, after which the cache is too old to act on."""
MAX_WATCH_STALL_S = 600.0
"""Time in which a watch may neither receive nor retry: longer than the longest read timeout of a watch."""
MAX_PASS_STALL_S = 120.0
"""Time in which no pass may end while keys wait: longer than the timeout of any request."""


def liveness_failures(manager: ControllerManager) -> Iterator[str]:
    """Faults of this process that a restart cures."""
    watch_stalled_s = manager.cache.stalled_for_s()
    if watch_stalled_s > MAX_WATCH_STALL_S:
        yield f"a watch has been stalled for {watch_stalled_s:.0f} s"
    loop_stalled_s = manager.loop.stalled_for_s()
    if manager.is_leader and loop_stalled_s > MAX_PASS_STALL_S:
        yield f"no pass has ended for {loop_stalled_s:.0f} s; {manager.loop.queue_length} keys queued"


def is_ready(manager: ControllerManager) -> bool:
    """Whether it could reconcile, as leader or after a failover."""
    return manager.cache.complete and not _stale_cache_failure(manager) and not any(liveness_failures(manager))


def health_report(manager: ControllerManager) -> str:
    """All failures, one per line, then one line with the role and the state of cache and loop."""
    loop = manager.loop
    role = "leader" if manager.is_leader else "standby"
    passes = f"{loop.pass_count} passes, {loop.queue_length} queued, {loop.failing_count} failing"
    unwatchable = [f"{kind}: {each.what}" for kind, each in manager.cache.unwatchable_kinds.items()]
    lines = [
        *liveness_failures(manager),
        *_stale_cache_failure(manager),
        *unwatchable,
        f"{role}; cache {manager.cache.age_s():.0f} s old; {passes}",
    ]
    return "\n".join(lines) + "\n"


def _stale_cache_failure(manager: ControllerManager) -> list[str]:
    age_s = manager.cache.age_s()
    return [f"no response from the API server for {age_s:.0f} s"] if age_s > MAX_CACHE_AGE_S else []
