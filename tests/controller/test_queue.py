"""What waits for a pass: urgent work first, each project in its turn, and nobody for ever."""

from __future__ import annotations

from pincompute.controller.passes import Key
from pincompute.controller.queue import SHARE, Queue


def taken(queue: Queue) -> list[str]:
    """Projects and names, in the order of their turns."""
    return [str(key) for key in iter(queue.take, None)]


def filled(*rows: tuple[str, int]) -> Queue:
    queue = Queue()
    for key, level in rows:
        project, _, name = key.partition("/")
        queue.put(Key(project, name), level)
    return queue


def test_no_project_waits_for_the_backlog_of_another() -> None:
    queue = filled(*((f"big/{number}", 1) for number in range(100)), ("small/a", 1), ("tiny/a", 1), ("small/b", 1))
    assert taken(queue)[:6] == ["big/0", "small/a", "tiny/a", "big/1", "small/b", "big/2"]


def test_what_is_urgent_comes_first_and_moves_up_but_never_down() -> None:
    queue = filled(("me/slow", 2), ("me/edited", 2), ("me/seen", 1), ("me/edited", 0), ("me/edited", 2))
    assert len(queue) == 3
    assert Key("me", "edited") in queue
    assert taken(queue) == ["me/edited", "me/seen", "me/slow"]
    assert Key("me", "edited") not in queue


def test_the_least_urgent_gets_its_share_while_urgent_work_never_ends() -> None:
    queue = filled(("me/patient", 2))
    turns = 0
    while Key("me", "patient") in queue:
        queue.put(Key("me", f"urgent-{turns}"), 0)
        queue.take()
        turns += 1
    assert turns == SHARE


def test_an_empty_queue_has_nobody() -> None:
    assert Queue().take() is None
