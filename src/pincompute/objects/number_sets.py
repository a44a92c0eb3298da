"""Numbers in Kubernetes' notation: index sets such as 0-16,18,203, and percentages such as 25%."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain

MAX_NUMBERS = 10_000
"""Most numbers of a set. A few characters can name a million of them, and a longer text name those again and again."""
NUMBERS_PATTERN = r"[0-9]{1,6}(-[0-9]{1,6})?(,[0-9]{1,6}(-[0-9]{1,6})?)*"


def parse_numbers(text: str) -> frozenset[int]:
    """Parse an index set. ValueError for a reversed range, a part that is not a number, or too many numbers."""
    return frozenset(chain.from_iterable(_disjoint_ranges(text)))


@lru_cache(maxsize=8)
def sorted_numbers(text: str) -> tuple[int, ...]:
    """The numbers of an index set in order; cached, because each pod of a batch looks its own number up."""
    return tuple(chain.from_iterable(_disjoint_ranges(text)))


def largest_number(text: str) -> int:
    """The largest number of an index set that is not empty, without listing them all."""
    return _disjoint_ranges(text)[-1][-1]


def format_numbers(numbers: Iterable[int]) -> str:
    """Format an index set. Three or more consecutive numbers become a range."""
    parts: list[str] = []
    for first, last in _runs(sorted(numbers)):
        parts += [f"{first}-{last}"] if last - first > 1 else [str(each) for each in range(first, last + 1)]
    return ",".join(parts)


def scaled_value(share: int | str, whole: int, *, up: bool) -> int:
    """Resolve a count or percentage against a total, rounding up or down."""
    text = str(share)
    if not text.endswith("%"):
        return int(text)
    hundredths = int(text.removesuffix("%")) * whole
    return -(-hundredths // 100) if up else hundredths // 100


@lru_cache(maxsize=64)
def _disjoint_ranges(text: str) -> tuple[range, ...]:
    """The ranges of an index set in order. Each number is in one of them only, and is counted before it is listed."""
    disjoint: list[range] = []
    next_number = count = 0
    for first, last in sorted(_bounds(part) for part in text.split(",") if part):
        numbers = range(max(first, next_number), last + 1)
        count += len(numbers)
        if count > MAX_NUMBERS:
            raise ValueError(f"the set has more than {MAX_NUMBERS:,} numbers")
        if numbers:
            disjoint.append(numbers)
        next_number = max(next_number, last + 1)
    return tuple(disjoint)


def _bounds(part: str) -> tuple[int, int]:
    first, dash, last = part.partition("-")
    bounds = int(first), int(last if dash else first)
    if bounds[0] > bounds[1]:
        raise ValueError(f"the range '{part}' is reversed")
    return bounds


def _runs(numbers: list[int]) -> Iterator[tuple[int, int]]:
    first = last = None
    for number in numbers:
        if first is not None and last is not None and number != last + 1:
            yield first, last
            first = None
        first, last = number if first is None else first, number
    if first is not None and last is not None:
        yield first, last
