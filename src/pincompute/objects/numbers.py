"""Numbers as Kubernetes spells them: sets such as 0-16,18,203, and shares such as 25%."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

NUMBERS_PATTERN = r"[0-9]{1,6}(-[0-9]{1,6})?(,[0-9]{1,6}(-[0-9]{1,6})?)*"


def parse(text: str) -> frozenset[int]:
    """ValueError where a range runs backwards, or a part is no number."""
    return frozenset(number for part in text.split(",") if part for number in _range(part))


def spell(numbers: Iterable[int]) -> str:
    """Three and more in a row become a range."""
    parts: list[str] = []
    for first, last in _runs(sorted(numbers)):
        parts += [f"{first}-{last}"] if last - first > 1 else [str(each) for each in range(first, last + 1)]
    return ",".join(parts)


def share_of(share: int | str, whole: int, *, up: bool) -> int:
    """A number, or a part of the whole, rounded up or down."""
    said = str(share)
    if not said.endswith("%"):
        return int(said)
    hundredths = int(said.removesuffix("%")) * whole
    return -(-hundredths // 100) if up else hundredths // 100


def _range(part: str) -> range:
    first, dash, last = part.partition("-")
    found = range(int(first), int(last if dash else first) + 1)
    if not found:
        raise ValueError(f"'{part}' runs backwards")
    return found


def _runs(numbers: list[int]) -> Iterator[tuple[int, int]]:
    first = last = None
    for number in numbers:
        if first is not None and last is not None and number != last + 1:
            yield first, last
            first = None
        first, last = number if first is None else first, number
    if first is not None and last is not None:
        yield first, last
