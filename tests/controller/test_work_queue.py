"""The work queue: priorities, round robin over projects, no starvation."""

from __future__ import annotations

from pincompute.controller.passes import Key
from pincompute.controller.work_queue import LOW_PRIORITY_EVERY, WorkQueue


def take_all(queue: WorkQueue) -> list[str]:
    """All keys in the order in which they are take_all."""
    return [str(key) for key in iter(queue.take, None)]


def queue_of(*rows: tuple[str, int]) -> WorkQueue:
    queue = WorkQueue()
    for key, priority in rows:
        project, _, name = key.partition("/")
        queue.put(Key(project, name), priority)
    return queue


def test_projects_take_turns() -> None:
    queue = queue_of(*((f"big/{number}", 1) for number in range(100)), ("small/a", 1), ("tiny/a", 1), ("small/b", 1))
    assert take_all(queue)[:6] == ["big/0", "small/a", "tiny/a", "big/1", "small/b", "big/2"]


def test_urgent_keys_come_first_and_never_lose_priority() -> None:
    queue = queue_of(("me/slow", 2), ("me/edited", 2), ("me/seen", 1), ("me/edited", 0), ("me/edited", 2))
    assert len(queue) == 3
    assert Key("me", "edited") in queue
    assert take_all(queue) == ["me/edited", "me/seen", "me/slow"]
    assert Key("me", "edited") not in queue


def test_steady_urgent_keys_do_not_starve_low_priority() -> None:
    queue = queue_of(("me/waiting", 2))
    turns = 0
    while Key("me", "waiting") in queue:
        queue.put(Key("me", f"urgent-{turns}"), 0)
        queue.take()
        turns += 1
    assert turns == LOW_PRIORITY_EVERY


def test_take_from_empty_queue_returns_none() -> None:
    assert WorkQueue().take() is None
