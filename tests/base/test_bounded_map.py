"""The bounded map evicts its oldest entry."""

from __future__ import annotations

from pincompute.base.bounded_map import BoundedMap


def test_evicts_the_oldest_entry() -> None:
    entries: BoundedMap[str, int] = BoundedMap(2)
    entries.put("a", 1)
    entries.put("b", 2)
    # Overwriting makes an entry the newest.
    entries.put("a", 3)
    entries.put("c", 4)
    assert dict(entries) == {"a": 3, "c": 4}
