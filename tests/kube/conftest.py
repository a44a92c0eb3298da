"""Fixtures: a client of the real API server, a namespace per test, and a forwarder that can cut connections."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import count

import pytest

from control_plane import ControlPlane
from pincompute.kube.client import Client
from pincompute.kube.resource import NAMESPACES
from tcp_forwarder import TcpForwarder

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
async def forwarder(plane: ControlPlane) -> AsyncIterator[TcpForwarder]:
    async with TcpForwarder(plane.port) as forwarder:
        yield forwarder
