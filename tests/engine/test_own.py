"""Our own processes: what they need is asked for before they are started."""

from __future__ import annotations

import pytest

from pincompute.base.problem import Refused
from pincompute.engine import own


def test_what_the_desk_needs_is_here() -> None:
    own.require_desk()


def test_an_extra_that_was_not_installed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own, "DESK_NEEDS", ("alembic", "no_such_package"))
    with pytest.raises(Refused) as refused:
        own.require_desk()
    assert "needs no_such_package" in refused.value.text()
    assert "next: pip install 'pincompute[desk]'" in refused.value.text()
