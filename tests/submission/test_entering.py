"""Who goes into a copy: those who may, and on record before they do. That it works is shown on a real node."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiohttp import WSServerHandshakeError

from control_plane import ControlPlane
from pincompute.submission.tables import audit
from tenants import tenants

pytestmark = pytest.mark.cluster


async def test_who_may_goes_in_and_is_on_record_without_what_they_typed(plane: ControlPlane, tmp_path: Path) -> None:
    async with tenants(plane, tmp_path) as here:
        assert (await here.deploy("dan", here.ads)).status == 201
        path = f"/projects/{here.ads}/workloads/hello"
        told = await here.ask("vera", "GET", f"{path}/programs?command=psql&command=secret")
        assert (told.status, told.reason) == (403, "NotAllowed")
        assert "may not go into what runs in the project" in told.body["errors"][0]["detail"]
        # There is nobody inside, for there is no node.
        for way in ("programs?command=psql&command=secret&copy=abcde", "ports/5432"):
            with pytest.raises(WSServerHandshakeError, match="404"):
                await here.world.http.ws_connect(f"/v1{path}/{way}", headers={"Authorization": "Bearer dan"})
            # Who asks for no socket does not get as far as the record.
            assert (await here.ask("dan", "GET", f"{path}/{way}")).reason == "UpgradeNeeded"
        noted = await here.world.database.do(lambda connection: connection.execute(audit.select()).mappings().all())
        found = [(each["who"], each["about"], each["words"]) for each in noted if each["act"] == "enter"]
        assert found == [
            ("dan", "PinterestService/hello", "ran psql in abcde"),
            ("dan", "PinterestService/hello", "reached port 5432 of a copy"),
        ]


@pytest.mark.parametrize("way", ["ports/0", "ports/65536", "ports/http", "programs?terminal=perhaps"])
async def test_what_cannot_be_meant_is_told(plane: ControlPlane, tmp_path: Path, way: str) -> None:
    async with tenants(plane, tmp_path) as here:
        told = await here.ask("dan", "GET", f"/projects/{here.ads}/workloads/hello/{way}")
        assert (told.status, told.reason) == (422, "DocumentInvalid")
