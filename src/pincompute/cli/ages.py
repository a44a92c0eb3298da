"""How long ago, in two words at most: 12s, 3m12s, 2h5m, 3d4h."""

from __future__ import annotations

from datetime import datetime

_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


def age(since: str, now: datetime) -> str:
    """Nothing where nobody knows since when."""
    return lasted(since, now.isoformat()) if since else ""


def lasted(since: str, until: str) -> str:
    return duration((datetime.fromisoformat(until) - datetime.fromisoformat(since)).total_seconds())


def duration(seconds: float) -> str:
    """Clocks of two machines differ: what has not begun by ours has just begun."""
    left = max(0, int(seconds))
    first = next((place for place, (_, size) in enumerate(_UNITS) if left >= size), len(_UNITS) - 1)
    words: list[str] = []
    for letter, size in _UNITS[first : first + 2]:
        count, left = divmod(left, size)
        if count or not words:
            words.append(f"{count}{letter}")
    return "".join(words)
