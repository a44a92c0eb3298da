"""What is said of the desk's API: every way to ask is described, and by what is there."""

from __future__ import annotations

from typing import Any, cast

import pytest
from aiohttp import web

from pincompute.submission.server import ways
from pincompute.submission.speech import speech_of

NOBODY = cast("Any", None)
WAYS = ways(NOBODY, NOBODY, NOBODY)


@pytest.mark.parametrize("way", WAYS, ids=lambda each: f"{each.method} {each.path}")
def test_every_way_to_ask_says_what_it_takes_and_gives(way: web.RouteDef) -> None:
    speech = speech_of(way.handler)
    assert speech is not None, f"write @speaks(…) above {way.handler.__name__}: see submission/speech.py"
    assert (way.handler.__doc__ or "").strip().endswith("."), f"{way.handler.__name__} has no words of its own"
    assert (speech.takes is None) == (speech.example is None), "what is sent has an example"
