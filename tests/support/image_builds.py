"""Builds of images in the sandbox, with a registry that has a base image, and without a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from click.testing import CliRunner, Result

import busybox
from image_files import write_files
from pincompute.base.platform_context import Context, write_context
from pincompute.engine import proc
from pincompute.engine.images import loading, registry, sandbox
from pincompute.engine.nodes import cgroups
from pincompute.engine.nodes.mounts import mounts
from pincompute.engine.platform import Platform
from pincompute.main import command_group
from polling import until

PATIENCE_S = 600.0
"""Long enough for builds of other tests on this machine, which have processes in sandboxes, too."""


class ImageBuilds(NamedTuple):
    platform: Platform
    state: Path
    folder: Path
    """Of the caller: the build context is below it."""
    foreign_groups: frozenset[Path]
    """Control groups that builds of others have left on this machine."""

    @property
    def environment(self) -> dict[str, str]:
        return {"PIN_STATE": str(self.state), "PIN_CACHE": str(self.state / "cache")}

    @property
    def folders(self) -> list[Path]:
        """Folders of builds that run, or were killed."""
        return list((self.state / "cache/images/builds").iterdir())

    def wait_until_removed(self) -> None:
        """Nothing of a build is left. Other tests of this machine may build, too, so their processes end first."""
        assert self.folders == []
        wait_until_seen(lambda: not processes_in_sandboxes() and _control_groups() <= self.foreign_groups)

    def write(self, dockerfile: str, **files: str) -> Path:
        """Write a build context."""
        contents = {name: text.encode() for name, text in files.items()}
        return write_files(self.folder / "context", {"Dockerfile": dockerfile.encode(), **contents})

    def build(self, dockerfile: str, *words: str, **files: str) -> Result:
        context = self.write(dockerfile, **files)
        return CliRunner().invoke(
            command_group(), ["image", "load", str(context), "--as", "built:1", *words], env=self.environment
        )


def processes_in_sandboxes() -> list[int]:
    """Processes of accounts that exist in sandboxes only."""
    ids = range(sandbox.FIRST_ID, sandbox.FIRST_ID + sandbox.ID_COUNT)
    return [pid for pid in proc.pids() if _owner(pid) in ids]


def _owner(pid: int) -> int:
    try:
        return Path(f"/proc/{pid}").stat().st_uid
    except FileNotFoundError:
        return 0


def _control_groups() -> frozenset[Path]:
    tables = cgroups.hierarchies(mounts())
    return frozenset(group for table in tables for group in table.root.glob("pincompute-build-*"))


def wait_until_seen(condition: Callable[[], bool]) -> None:
    async def holds() -> bool:
        return condition()

    asyncio.run(until(holds, within=PATIENCE_S))


@pytest.fixture(scope="session")
def build_state(registry_platform: Platform, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """State folder whose main platform is the registry, which has the image of busybox."""
    state = tmp_path_factory.mktemp("builds")
    home = registry_platform.home
    write_context(
        state,
        msgspec.structs.replace(
            Context(name="main", desk="", token="", kubeconfig=""),
            images=registry.writes_address(registry_platform), certificates=str(home.certificates),
            registry_key=str(registry.token_key(registry_platform)),
        ),
    )  # fmt: skip
    busybox.write_image(state / "busybox.tar")
    asyncio.run(_load(registry_platform, state / "busybox.tar"))
    return state


@pytest.fixture
def image_builds(registry_platform: Platform, build_state: Path, tmp_path: Path) -> ImageBuilds:
    return ImageBuilds(registry_platform, build_state, tmp_path, _control_groups())


async def _load(platform: Platform, archive: Path) -> None:
    async with registry.open_registry(platform) as images:
        await loading.load_images(images, archive)
