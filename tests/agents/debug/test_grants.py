"""Grants are for one node, one request, one minute, and one use."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from manual_clock import ManualClock
from pincompute.agents.debug import grants
from pincompute.agents.debug.grants import MAX_CLOCK_SKEW_S, GrantVerifier
from pincompute.base.certificate_authority import Authority
from pincompute.base.debug_grant import LIFETIME_S, GrantSigner, GrantSubject, load_grant_key
from pincompute.base.ids import RandomIds
from pincompute.base.problem import Refused

SUBJECT = GrantSubject("node-1", "ann", "session-1", "exec", "2f1c", "web", b"{}")


class Desk:
    def __init__(self, folder: Path) -> None:
        authority = Authority(folder)
        authority.establish()
        authority.issue_key("grants")
        self.clock = ManualClock()
        self.signer = GrantSigner(authority.key("grants"), self.clock, RandomIds())
        self.public_key = load_grant_key(folder / "grants.pub")


@pytest.fixture
def granting_desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "desk")


@pytest.fixture
def verifier(granting_desk: Desk) -> GrantVerifier:
    return GrantVerifier("node-1", granting_desk.public_key, ManualClock())


def later(clock: ManualClock, seconds: float) -> None:
    clock.at += timedelta(seconds=seconds)


def test_accepts_a_grant_once(granting_desk: Desk, verifier: GrantVerifier) -> None:
    token = granting_desk.signer.sign(SUBJECT)
    grant = verifier.verify(token, b"{}")
    assert (grant.sub, grant.uid, grant.container, grant.verb) == ("ann", "2f1c", "web", "exec")
    with pytest.raises(Refused, match="used already"):
        verifier.verify(token, b"{}")
    verifier.verify(granting_desk.signer.sign(SUBJECT), b"{}")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"node": "node-2"}, "is for node node-2"),
        ({"request": b"other"}, "another request"),
        ({"uid": 'x"'}, "malformed"),
        ({"container": "a b"}, "malformed"),
    ],
)
def test_refuses_what_is_for_another(
    granting_desk: Desk, verifier: GrantVerifier, change: dict[str, object], why: str
) -> None:
    with pytest.raises(Refused, match=why):
        verifier.verify(granting_desk.signer.sign(SUBJECT._replace(**change)), b"{}")  # pyrefly: ignore


def test_refuses_the_key_of_another_platform(verifier: GrantVerifier, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="not signed by the desk"):
        verifier.verify(Desk(tmp_path / "other").signer.sign(SUBJECT), b"{}")


@pytest.mark.parametrize("offset_s", [-MAX_CLOCK_SKEW_S, 0, MAX_CLOCK_SKEW_S])
def test_tolerates_a_bounded_difference_of_clocks(
    granting_desk: Desk, verifier: GrantVerifier, offset_s: float
) -> None:
    later(granting_desk.clock, offset_s)
    verifier.verify(granting_desk.signer.sign(SUBJECT), b"{}")


def test_refuses_grants_of_the_future_and_expired_ones(granting_desk: Desk) -> None:
    clock = ManualClock()
    verifier = GrantVerifier("node-1", granting_desk.public_key, clock)
    token = granting_desk.signer.sign(SUBJECT)
    later(granting_desk.clock, MAX_CLOCK_SKEW_S + 1)
    with pytest.raises(Refused, match="begins 31 s from now"):
        verifier.verify(granting_desk.signer.sign(SUBJECT), b"{}")
    later(clock, LIFETIME_S + MAX_CLOCK_SKEW_S + 1)
    with pytest.raises(Refused, match="expired 31 s ago"):
        verifier.verify(token, b"{}")


def test_refuses_grants_from_before_its_start(granting_desk: Desk) -> None:
    clock = ManualClock()
    token = granting_desk.signer.sign(SUBJECT)
    later(clock, MAX_CLOCK_SKEW_S + 1)
    with pytest.raises(Refused, match="restarted"):
        GrantVerifier("node-1", granting_desk.public_key, clock).verify(token, b"{}")


def test_forgets_used_grants_when_they_have_expired(
    granting_desk: Desk, verifier: GrantVerifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grants, "MAX_USED", 2)
    clock = ManualClock()
    verifier = GrantVerifier("node-1", granting_desk.public_key, clock)
    for _ in range(2):
        verifier.verify(granting_desk.signer.sign(SUBJECT), b"{}")
    with pytest.raises(Refused, match="has used 2 grants"):
        verifier.verify(granting_desk.signer.sign(SUBJECT), b"{}")
    for each in (clock, granting_desk.clock):
        later(each, LIFETIME_S + MAX_CLOCK_SKEW_S + 1)
    verifier.verify(granting_desk.signer.sign(SUBJECT), b"{}")
