"""Makes text of tenants safe for a terminal, which would act on control characters."""

from __future__ import annotations

import re

_CONTROL = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]")
"""Control characters but tab and line break, and those that reverse the direction of text."""


def printable(text: str) -> str:
    """The text with control characters written out, such as \\x1b: they could move the cursor or set the clipboard."""
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)
