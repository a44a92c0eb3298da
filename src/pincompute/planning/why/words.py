"""What others said, as evidence: one line, of a sane length, and with no secret in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

FEW = 5
"""Of many names, so many are told."""
LENGTH = 300
"""Characters of evidence: a condition is read in a terminal."""

_SECRET = re.compile(
    r"(?P<kept>://[^/\s:@]*:)[^/@\s]+(?=@)"
    r"|(?P<word>[\w-]*(?:passw(?:or)?d|passphrase|secret|token|api[_-]?key|access[_-]?key|credential)[\w-]*[\"']?\s*[=:]\s*)"
    r"(?:\"[^\"]*\"|'[^']*'|[^\s,;&]+)"
    r"|(?P<scheme>\b(?:bearer|basic)\s+)[\w.~+/=-]{8,}"
    r"|\beyJ[\w-]+\.[\w-]+\.[\w-]*"
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    re.IGNORECASE,
)
"""A password in an address, a value that is called a secret, a header, a signed token, a cloud's key."""


def masked(text: str) -> str:
    return _SECRET.sub(lambda found: f"{found['kept'] or found['word'] or found['scheme'] or ''}***", text)


def beginning(text: str) -> str:
    """Of what says the most important thing first."""
    line = masked(_line(text))
    return line if len(line) <= LENGTH else f"{line[: LENGTH - 1]}…"


def ending(text: str) -> str:
    """Of what says the most important thing last, as chains of errors do."""
    line = masked(_line(text))
    return line if len(line) <= LENGTH else f"…{line[1 - LENGTH :]}"


def last_line(text: str) -> str:
    """Of what a program printed."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return beginning(lines[-1]) if lines else ""


def listed(items: Iterable[str]) -> str:
    """One, two and three."""
    *first, last = items
    return f"{', '.join(first)} and {last}" if first else last


def some(items: Sequence[str]) -> str:
    """The first few, and how many more."""
    more = len(items) - FEW
    return listed([*items[:FEW], f"{more} more"] if more > 0 else items)


def lasting(seconds: float) -> str:
    """How long, for people. Never an age: a message that changes with the clock would be written again and again."""
    return f"{seconds:.0f} seconds" if seconds < 120 else f"{seconds / 60:.0f} minutes"


def _line(text: str) -> str:
    return " ".join(text.split())
