"""So many of the newest are kept."""

from __future__ import annotations

from pincompute.base.recent import Recent


def test_the_eldest_make_room() -> None:
    recent: Recent[str, int] = Recent(2)
    recent.note("a", 1)
    recent.note("b", 2)
    # What is noted again is new again.
    recent.note("a", 3)
    recent.note("c", 4)
    assert dict(recent) == {"a": 3, "c": 4}
