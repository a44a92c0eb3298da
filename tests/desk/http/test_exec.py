"""Exec is authorized and audited before it begins. Cluster tests run it on a real node."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiohttp import WSServerHandshakeError

from control_plane import ControlPlane
from pincompute.desk.store.tables import audit
from tenant_projects import tenant_projects

pytestmark = pytest.mark.cluster


async def test_exec_is_audited_without_its_arguments(plane: ControlPlane, tmp_path: Path) -> None:
    async with tenant_projects(plane, tmp_path) as here:
        assert (await here.deploy("dan", here.ads)).status == 201
        path = f"/projects/{here.ads}/workloads/hello"
        told = await here.request("vera", "GET", f"{path}/programs?command=psql&command=secret")
        assert (told.status, told.reason) == (403, "Forbidden")
        assert "may not exec into workloads of project" in told.body["errors"][0]["detail"]
        # Without a node there is no replica.
        for way in ("programs?command=psql&command=secret&copy=abcde", "ports/5432"):
            with pytest.raises(WSServerHandshakeError, match="404"):
                await here.world.http.ws_connect(f"/v1{path}/{way}", headers={"Authorization": "Bearer dan"})
            # A plain request is refused before it is audited.
            assert (await here.request("dan", "GET", f"{path}/{way}")).reason == "WebsocketRequired"
        noted = await here.world.database.transact(
            lambda connection: connection.execute(audit.select()).mappings().all()
        )
        found = [(each["who"], each["about"], each["words"]) for each in noted if each["act"] == "enter"]
        assert found == [
            ("dan", "PinterestService/hello", "ran psql in abcde"),
            ("dan", "PinterestService/hello", "connected to port 5432 of a replica"),
        ]


@pytest.mark.parametrize("way", ["ports/0", "ports/65536", "ports/http", "programs?terminal=perhaps"])
async def test_invalid_exec_parameters_are_refused(plane: ControlPlane, tmp_path: Path, way: str) -> None:
    async with tenant_projects(plane, tmp_path) as here:
        told = await here.request("dan", "GET", f"/projects/{here.ads}/workloads/hello/{way}")
        assert (told.status, told.reason) == (422, "DocumentInvalid")
