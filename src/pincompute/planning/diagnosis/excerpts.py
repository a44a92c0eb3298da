"""Excerpts of foreign messages for use as evidence: a single line of limited length, with secrets masked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

MAX_LISTED_ITEMS = 5
MAX_EXCERPT_CHARS = 300
"""A condition is read in a terminal."""

_SECRET = re.compile(
    r"(?P<userinfo>://[^/\s:@]*:)[^/@\s]+(?=@)"
    r"|(?P<key>(?<![\w-])(?=[\w-]++[\"']?\s*[=:])"
    r"[\w-]*(?:passw(?:or)?d|passphrase|secret|token|api[_-]?key|access[_-]?key|credential)"
    r"[\w-]*+[\"']?\s*[=:]\s*)"
    r"(?:\"[^\"]*\"|'[^']*'|[^\s,;&]+)"
    r"|(?P<scheme>\b(?:bearer|basic)\s+)[\w.~+/=-]{8,}"
    r"|\beyJ[\w-]{1,1024}+\.[\w-]++\.[\w-]*"
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    re.IGNORECASE,
)
"""A password in a URL, the value of a key with a telling name, an authorization header, a JWT, or an AWS access key.

A word is tried once, from its start, and not again from each of its letters: a program writes the text, and the
operator would be busy for a second with a word of 4,096 letters.
"""


def mask_secrets(text: str) -> str:
    return _SECRET.sub(lambda found: f"{found['userinfo'] or found['key'] or found['scheme'] or ''}***", text)


def excerpt_start(text: str) -> str:
    """The start of a message that begins with the most important part."""
    line = mask_secrets(_single_line(text))
    return line if len(line) <= MAX_EXCERPT_CHARS else f"{line[: MAX_EXCERPT_CHARS - 1]}…"


def excerpt_end(text: str) -> str:
    """The end of a message that ends with the most important part, as wrapped errors do."""
    line = mask_secrets(_single_line(text))
    return line if len(line) <= MAX_EXCERPT_CHARS else f"…{line[1 - MAX_EXCERPT_CHARS :]}"


def last_line(text: str) -> str:
    """The last line of a program's output that is not blank."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return excerpt_start(lines[-1]) if lines else ""


def join_with_and(items: Iterable[str]) -> str:
    """Joins as `one, two and three`."""
    *first, last = items
    return f"{', '.join(first)} and {last}" if first else last


def join_first_few(items: Sequence[str]) -> str:
    """Joins the first items, and counts the others."""
    more = len(items) - MAX_LISTED_ITEMS
    return join_with_and([*items[:MAX_LISTED_ITEMS], f"{more} more"] if more > 0 else items)


def format_duration(seconds: float) -> str:
    """A duration in words.

    Only for fixed durations such as a grace period: an age would change the message, and with it the status, in every
    pass.
    """
    return f"{seconds:.0f} seconds" if seconds < 120 else f"{seconds / 60:.0f} minutes"


def _single_line(text: str) -> str:
    return " ".join(text.split())
