"""Fixtures: an image registry of its own, Debian's nginx and ZooKeeper, and an API server with our policies."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from control_plane import ControlPlane
from ingress_agent import nginx as nginx
from policed_cluster import PolicedProject, policed_plane, policed_project
from zookeeper_server import shared_zookeeper as shared_zookeeper


@pytest.fixture(scope="module")
def policed(plane: ControlPlane) -> Iterator[ControlPlane]:
    with policed_plane(plane) as started:
        yield started


@pytest.fixture
async def project(policed: ControlPlane) -> AsyncIterator[PolicedProject]:
    async with policed_project(policed) as made:
        yield made
