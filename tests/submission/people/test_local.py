"""Who works at this machine: by the token in their own file, and from nowhere else."""

from __future__ import annotations

import pytest

from pincompute.base.problem import Refused
from pincompute.submission.people.door import Door, Shown
from pincompute.submission.people.local import LocalToken

DOOR = Door([LocalToken("correct horse", "pat")])


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.9.10", "::1"])
async def test_whose_machine_it_is_administers_it(address: str) -> None:
    who = await DOOR.identify(Shown("correct horse", address=address))
    assert (str(who), who.administers) == ("pat", True)


@pytest.mark.parametrize(
    ("shown", "told"),
    [
        (Shown("correct horse", address="192.0.2.1"), "nobody here knows who sent this token"),
        (Shown("correct horse", address=""), "nobody here knows"),
        (Shown("correct horse battery", address="127.0.0.1"), "nobody here knows"),
        (Shown("", address="127.0.0.1"), "this request does not say who sends it"),
        (Shown("h\u00f6rse", address="127.0.0.1"), "nobody here knows"),
    ],
)
async def test_nobody_else_is_anybody(shown: Shown, told: str) -> None:
    with pytest.raises(Refused, match=told) as refused:
        await DOOR.identify(shown)
    assert refused.value.json()["status"] == 401
    assert "correct" not in refused.value.text()


def test_an_empty_token_is_none() -> None:
    with pytest.raises(AssertionError):
        LocalToken("", "pat")
