"""Numbers in Kubernetes' notation: index sets such as 0-16,18,203, and percentages such as 25%."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

NUMBERS_PATTERN = r"[0-9]{1,6}(-[0-9]{1,6})?(,[0-9]{1,6}(-[0-9]{1,6})?)*"


def parse_numbers(text: str) -> frozenset[int]:
    """Parse an index set. ValueError for a reversed range or a part that is not a number."""
    return frozenset(number for part in text.split(",") if part for number in _range(part))


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


def _range(part: str) -> range:
    first, dash, last = part.partition("-")
    numbers = range(int(first), int(last if dash else first) + 1)
    if not numbers:
        raise ValueError(f"the range '{part}' is reversed")
    return numbers


def _runs(numbers: list[int]) -> Iterator[tuple[int, int]]:
    first = last = None
    for number in numbers:
        if first is not None and last is not None and number != last + 1:
            yield first, last
            first = None
        first, last = number if first is None else first, number
    if first is not None and last is not None:
        yield first, last
