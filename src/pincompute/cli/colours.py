"""Colours by severity, on a terminal only, and as NO_COLOR and FORCE_COLOR say.

`click.echo` removes them where the output is no terminal.
"""

from __future__ import annotations

import os

import click

from pincompute.base.reasons import find_reason
from pincompute.base.reasons.reason import Severity

_COLOURS = {Severity.OK: "green", Severity.INFO: "yellow", Severity.ERROR: "red"}


def forced_colour() -> bool | None:
    """Whether the environment asks for colours, or for none; None for colours on a terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    return True if os.environ.get("FORCE_COLOR") else None


def colour_reason(code: str) -> str:
    """Colour a reason by its severity; unknown ones, of newer versions, stay plain."""
    reason = find_reason(code)
    return click.style(code, fg=_COLOURS[reason.severity]) if reason else code
