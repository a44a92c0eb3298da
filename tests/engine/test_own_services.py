"""Prerequisites of PinCompute's own parts are checked before they start."""

from __future__ import annotations

import pytest

from pincompute.base.problem import Refused
from pincompute.engine import own_services


def test_desk_packages_are_installed_in_the_test_environment() -> None:
    own_services.require_desk_packages()


def test_reports_missing_desk_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_services, "DESK_PACKAGES", ("alembic", "no_such_package"))
    with pytest.raises(Refused) as refused:
        own_services.require_desk_packages()
    assert "not installed: no_such_package" in refused.value.text()
    assert "next: pip install 'pincompute[desk]'" in refused.value.text()
