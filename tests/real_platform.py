"""A platform with a real node, started once for the whole run, and what is seen of it on this machine."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from pathlib import Path

import pytest

from busybox import write_image
from pincompute.base.settings import setting
from pincompute.engine import processes
from pincompute.engine.down import down
from pincompute.engine.home import home_of
from pincompute.engine.images import loading, registry
from pincompute.engine.nodes import cgroups
from pincompute.engine.nodes.mounts import beneath, mounts
from pincompute.engine.platform import Platform
from pincompute.engine.progress import Progress
from pincompute.engine.settle import Wish
from pincompute.engine.up import up
from pincompute.kube.client import Client
from pincompute.kube.kubeconfig import load
from pincompute.kube.registry import Registry
from pincompute.kube.resource import Object, Resource
from pincompute.kube.watch import DELETED

PATIENCE = 60.0


@pytest.fixture(scope="session")
def real_platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """With Kubeflow's operator beside it, and the image of busybox.py in its registry."""
    platform = start("real", tmp_path_factory.mktemp("real"))
    yield platform
    down(platform.home, Progress(), purge=True)


@pytest.fixture
async def client(real_platform: Platform) -> AsyncIterator[Client]:
    """That platform's, with all rights."""
    async with Client(load(real_platform.home.kubeconfig), agent="test") as client:
        yield client


def start(name: str, state: Path) -> Platform:
    # Its port is not a person's: a demo that runs on this machine is not disturbed.
    wish = Wish(http_port=free_port(), wanted=("kubeflow",))
    platform = up(home_of(name, state), wish, Path(setting("cache")), Progress())
    assert platform.real, "without a real node these tests are not even chosen"
    write_image(state / "busybox.tar")
    asyncio.run(_load(platform, state / "busybox.tar"))
    return platform


def traces(platform: Platform) -> list[str]:
    """All that can be seen of a platform on this machine outside its own folder."""
    name, home = platform.namespace, platform.home.root
    found = [f"process {each.part} {each.pid}" for each in processes.marked(platform.home)]
    found += [f"mount {point}" for point in beneath(home, mounts())]
    found += [f"control group {name}"] if cgroups.exists(name) else []
    found += [f"container {pid}" for pid in cgroups.members(name)]
    found += [str(file) for file in (Path(f"/run/netns/{name}"), Path(f"/sys/class/net/{name}h")) if file.exists()]
    for folder in ("/var/log/containers", "/var/lib/cni/results"):
        found += [str(file) for file in Path(folder).glob("*") if str(home) in _said(file)]
    return found


async def until(
    client: Client, resource: Resource, namespace: str, holds: Callable[[Object], object], name: str = ""
) -> Object:
    """The first object that is there, of that name where one is given, of which something holds."""
    fields = f"metadata.name={name}" if name else ""
    seen: Object = {}
    try:
        async with asyncio.timeout(PATIENCE):
            while True:  # the server ends a watch when it likes
                async with aclosing(client.watch(resource, namespace, fields=fields)) as events:
                    async for event in events:
                        seen = event.object
                        if event.type != DELETED and holds(seen):
                            return seen
    except TimeoutError:
        raise AssertionError(f"{resource.named(namespace, name)} is still {seen.get('status')}") from None


async def kubectl(platform: Platform, *words: str) -> str:
    process = await asyncio.create_subprocess_exec(
        platform.programs.kubernetes, "kubectl", *words,
        env={**os.environ, "KUBECONFIG": str(platform.home.kubeconfig)},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return out.decode()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def _load(platform: Platform, file: Path) -> None:
    async with Registry(registry.address(platform), platform.home.certificates) as store:
        await loading.load(store, file)


def _said(file: Path) -> str:
    try:
        return str(file.readlink()) if file.is_symlink() else file.read_text()
    except FileNotFoundError:
        # Of another platform, whose containers come and go meanwhile.
        return ""
