"""What is removed between the look at it and the write: somebody wrote in between, and nothing is wrong."""

from __future__ import annotations

import pytest
from simulation.clock import run
from simulation.line import Life, Line
from simulation.server import Server
from simulation.store import Store

from pincompute.controller.act import act
from pincompute.kube.access import Access
from pincompute.kube.client import Client
from pincompute.kube.errors import Conflict
from pincompute.objects.content import Object
from pincompute.planning.steps import Apply


def test_what_is_gone_is_no_fault_of_anybody() -> None:
    native: Object = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "me"}, "spec": {}}

    async def write() -> None:
        client = Client(Access(server="https://model"), "tests", transport=Line(Server(Store()), Life()))
        await act(client, "me", Apply(native, "00000000-0000-4000-8000-000000000000"))

    with pytest.raises(Conflict, match="removed in between"):
        run(write())
