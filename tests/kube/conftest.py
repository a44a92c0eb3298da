"""A client of the real API server, a namespace for each test, and a way to it that can be cut."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import count

import pytest

from control_plane import ControlPlane
from forwarder import Forwarder
from pincompute.kube.client import Client
from pincompute.kube.resource import NAMESPACES

_numbers = count(1)


@pytest.fixture
async def client(plane: ControlPlane) -> AsyncIterator[Client]:
    async with Client(plane.access(), agent="test") as client:
        yield client


@pytest.fixture
async def namespace(client: Client) -> str:
    name = f"test-{next(_numbers)}"
    await client.create(NAMESPACES, {"metadata": {"name": name}}, manager="test")
    return name


@pytest.fixture
async def forwarder(plane: ControlPlane) -> AsyncIterator[Forwarder]:
    async with Forwarder(plane.port) as forwarder:
        yield forwarder
