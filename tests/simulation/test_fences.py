"""What was planned by an older view is not told of what somebody has changed since."""

from __future__ import annotations

import msgspec
import pytest
from simulation.clock import run
from simulation.line import Life, Line
from simulation.server import Server
from simulation.store import Store

from pincompute.api.service import PinterestService
from pincompute.controller.report import report
from pincompute.controller.resources import NOUNS
from pincompute.kube.access import Access
from pincompute.kube.client import Client
from pincompute.kube.errors import Conflict
from pincompute.kube.resource import NAMESPACES


def test_a_status_is_of_the_very_revision_that_was_seen() -> None:
    async def write() -> None:
        store = Store()
        store.create(NAMESPACES, {"metadata": {"name": "me"}})
        client = Client(Access(server="https://model"), "tests", transport=Line(Server(store), Life()))
        resource = NOUNS["PinterestService"]
        body = {"metadata": {"name": "web", "namespace": "me"}, "spec": {"image": "web:1", "port": 8080}}
        seen = msgspec.convert(await client.create(resource, body, manager="tests"), PinterestService)
        said = msgspec.structs.replace(seen.status, revision=1)
        await report(client, seen, said)
        with pytest.raises(Conflict):
            await report(client, seen, msgspec.structs.replace(said, revision=2))
        assert (await client.get(resource, "web", "me"))["status"]["revision"] == 1

    run(write())
