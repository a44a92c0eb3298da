"""The proxy of mutual TLS, built once."""

from __future__ import annotations

from pathlib import Path

import pytest

from pincompute.base.progress import Progress
from pincompute.base.settings import setting_value
from pincompute.engine.mtls.proxy import build_proxy


@pytest.fixture(scope="session")
def mtls_program() -> Path:
    return build_proxy(Path(setting_value("cache")), Progress())
