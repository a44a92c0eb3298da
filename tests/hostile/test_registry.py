"""Attacks on the image registry: by a tenant's pod, by a local user, with stolen and forged credentials."""

from __future__ import annotations

import base64
import inspect
import json
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey

import registry_attacker
from control_plane import ControlPlane
from image_files import docker_save_files, layer, sha256, tar
from pincompute.base.certificate_authority import Authority
from pincompute.base.clock import SystemClock
from pincompute.base.problem import Refused
from pincompute.base.progress import Progress
from pincompute.base.registry_token import LIFETIME_S, RegistryAccess, RegistryTokenSigner, repository_access
from pincompute.desk.http.registry_routes import RegistryIssuer
from pincompute.engine.images import loading, own_image, registry
from pincompute.engine.platform import Platform
from pincompute.kube.client import Client
from pincompute.kube.image_registry import ImageRegistry
from pincompute.kube.resource import PODS
from real_platform import wait_until
from registry_attacker import CLOSED, VICTIM, Image, reads, send, writes
from tenant_projects import tenant_projects

TEXT = "the victim's"
Files = dict[str, tuple[int, int]]


@pytest.fixture
async def image(registry_platform: Platform, tmp_path: Path) -> Image:
    """The victim's image."""
    return await load_victim(registry_platform, tmp_path)


async def load_victim(platform: Platform, folder: Path) -> Image:
    archive = folder / "victim.tar"
    archive.write_bytes(tar(docker_save_files(TEXT, names=("victim:1",))))
    async with registry.open_registry(platform) as images:
        (loaded,) = await loading.load_images(images, archive)
    return Image(loaded.digest, sha256(layer(TEXT)))


@pytest.fixture
async def stored_unchanged(registry_platform: Platform, image: Image) -> AsyncIterator[None]:
    """No file of the registry is written or deleted during the test."""
    assert image
    before = stored_files(registry_platform)
    yield
    assert stored_files(registry_platform) == before


def stored_files(platform: Platform) -> Files:
    folder = platform.home.data / "registry"
    return {str(file): (file.stat().st_size, file.stat().st_mtime_ns) for file in folder.rglob("*") if file.is_file()}


@pytest.mark.usefixtures("stored_unchanged")
def test_no_byte_without_the_certificate_of_the_node(registry_platform: Platform, image: Image, tmp_path: Path) -> None:
    foreign = Authority(tmp_path / "foreign", name=f"{registry_platform.name}-registry")
    foreign.establish()
    foreign.issue("node")
    registry_platform.authority.issue("tenant", "admin", ("system:masters",))
    own = registry_platform.authority
    certificates = {
        "none": None,
        "self-signed": (str(foreign.bundle), str(foreign.key("ca"))),
        "of an authority of the same name": (str(foreign.certificate("node")), str(foreign.key("node"))),
        "of the platform's own authority": (str(own.certificate("tenant")), str(own.key("tenant"))),
        "of the registry itself": (str(own.certificate(registry.NODES)), str(own.key(registry.NODES))),
    }
    address = registry.nodes_address(registry_platform)
    outcomes = {
        (name, attempt.method, attempt.path): send(address, attempt, certificate=certificate)
        for name, certificate in certificates.items()
        for attempt in (*reads(image), *writes(image))
    }
    assert {key: outcome for key, outcome in outcomes.items() if outcome != CLOSED} == {}


@pytest.mark.usefixtures("stored_unchanged")
def test_stolen_certificate_of_the_node_reads_only(registry_platform: Platform, image: Image) -> None:
    certificate, key = map(str, registry.node_credentials(registry_platform))
    address = registry.nodes_address(registry_platform)
    outcomes = [send(address, attempt, certificate=(certificate, key)) for attempt in reads(image)]
    assert outcomes == ["200"] * len(outcomes)
    # 404: there is no such upload.
    assert {send(address, attempt, certificate=(certificate, key)) for attempt in writes(image)} <= {"404", "405"}


@pytest.mark.usefixtures("stored_unchanged")
def test_key_of_the_node_signs_no_tokens(registry_platform: Platform, image: Image) -> None:
    certificate, key = registry.node_credentials(registry_platform)
    claims = json.loads(decoded(RegistryTokenSigner(key).sign("node", (write_access(),)).split(".")[1]))
    chain = "".join(line for line in certificate.read_text().splitlines() if not line.startswith("-"))
    trusted = RegistryTokenSigner(registry.token_key(registry_platform)).key_id
    node_key = ECKey.import_key(key.read_text())
    headers: list[dict[str, Any]] = [{"x5c": [chain]}, {"jwk": node_key.as_dict(private=False)}, {"kid": trusted}]
    for header in headers:
        token = jwt.encode({"typ": "JWT", "alg": "ES256", **header}, claims, node_key)
        assert {send_write(registry_platform, each, token) for each in writes(image)} == {"401"}, header


@pytest.mark.usefixtures("stored_unchanged")
def test_no_write_without_a_valid_token(registry_platform: Platform, image: Image, tmp_path: Path) -> None:
    foreign = Authority(tmp_path / "foreign")
    foreign.establish()
    foreign.issue("tokens")
    signer = RegistryTokenSigner(registry.token_key(registry_platform))
    valid = signer.sign("ann", (write_access(),))
    header, claims, signature = valid.split(".")
    stronger = json.loads(decoded(claims))
    stronger["access"][0]["name"] = "library/other"
    past = RegistryTokenSigner(registry.token_key(registry_platform), Shifted(-timedelta(seconds=LIFETIME_S + 120)))
    future = RegistryTokenSigner(registry.token_key(registry_platform), Shifted(timedelta(hours=1)))
    tokens = {
        "none": "",
        "garbage": "garbage",
        "unsigned": f"{encoded({'typ': 'JWT', 'alg': 'none'})}.{claims}.",
        "signature removed": f"{header}.{claims}.",
        "claims changed": f"{header}.{encoded(stronger)}.{signature}",
        "another key": RegistryTokenSigner(foreign.key("tokens")).sign("ann", (write_access(),)),
        "expired": past.sign("ann", (write_access(),)),
        "not yet valid": future.sign("ann", (write_access(),)),
        "to read": signer.sign("ann", (repository_access(VICTIM),)),
        "another repository": signer.sign("ann", (repository_access("ads/web", write=True),)),
        "a prefix": signer.sign("ann", (repository_access("library", write=True),)),
        "no access": signer.sign("ann", ()),
    }
    outcomes = {
        (name, attempt.method, attempt.path): send_write(registry_platform, attempt, token)
        for name, token in tokens.items()
        for attempt in writes(image)
    }
    assert {key: outcome for key, outcome in outcomes.items() if outcome != "401"} == {}


def test_no_read_without_a_token_for_the_repository(registry_platform: Platform, image: Image) -> None:
    signer = RegistryTokenSigner(registry.token_key(registry_platform))
    other = signer.sign("ann", (repository_access("ads/web", write=True),))
    assert {send_write(registry_platform, attempt, "") for attempt in reads(image)} == {"401"}
    outcomes = [send_write(registry_platform, attempt, other) for attempt in reads(image)]
    # Any token may ask for the version of the API.
    assert outcomes == ["200", *["401"] * (len(outcomes) - 1)]


@pytest.mark.usefixtures("stored_unchanged")
def test_nothing_is_deleted_even_with_a_token_to_delete(registry_platform: Platform, image: Image) -> None:
    everything = RegistryAccess("repository", VICTIM, ("pull", "push", "delete", "*"))
    token = RegistryTokenSigner(registry.token_key(registry_platform)).sign("owner", (everything,))
    deletions = [attempt for attempt in writes(image) if attempt.method == "DELETE" and "uploads" not in attempt.path]
    assert [send_write(registry_platform, attempt, token) for attempt in deletions] == ["405", "405"]


def test_blob_of_another_repository_is_not_mounted(registry_platform: Platform, image: Image) -> None:
    token = RegistryTokenSigner(registry.token_key(registry_platform)).sign(
        "ann", (repository_access("library/mine", write=True),)
    )
    (mount,) = (attempt for attempt in writes(image) if "mount=" in attempt.path)
    assert send_write(registry_platform, mount, token) == "401"


def test_local_users_cannot_read_keys_or_images(registry_platform: Platform) -> None:
    home = registry_platform.home
    keys = (registry.node_credentials(registry_platform)[1], registry.token_key(registry_platform))
    assert [file.stat().st_mode & 0o077 for file in keys] == [0, 0]
    folders = (home.certificates, home.certificates / "registry", home.data / "registry")
    assert [folder.stat().st_mode & 0o077 for folder in folders] == [0, 0, 0]


@pytest.mark.cluster
async def test_pod_neither_reads_nor_writes_images(real_platform: Platform, client: Client, tmp_path: Path) -> None:
    victim = await load_victim(real_platform, tmp_path)
    async with registry.open_registry(real_platform) as images:
        (pushed,) = await own_image.push_variants(images, Progress(), ["attacker:1"])
        # Only the pinned digest still leads to a program.
        await loading.load_images(images, tmp_path / "victim.tar", ["attacker:1"])
    before = stored_files(real_platform)
    ports = real_platform.ports
    reachable = registry.nodes_address(real_platform)
    hidden = [f"{host}:{ports[registry.WRITES]}" for host in (real_platform.address, "127.0.0.1")]
    source = inspect.getsource(registry_attacker)
    container = {
        "name": "app",
        # The node still pulls: it has no image of this name yet.
        "image": f"attacker:1@{pushed.digest}",
        "command": ["python3", "-c", source, *victim, reachable, *hidden],
        "securityContext": {"runAsNonRoot": True},
    }
    spec = {"containers": [container], "restartPolicy": "Never", "automountServiceAccountToken": False}
    await client.create(PODS, {"metadata": {"name": "attacker", "namespace": "default"}, "spec": spec}, manager="test")
    ended = await wait_until(
        client, PODS, "default", lambda pod: pod["status"].get("phase") in {"Succeeded", "Failed"}, "attacker"
    )
    lines = [line.split() async for line in client.logs("default", "attacker")]
    await client.delete(PODS, "attacker", "default")
    assert ended["status"]["phase"] == "Succeeded", lines
    attempts = len(reads(victim)) + len(writes(victim))
    assert [outcome for address, *_, outcome in lines if address == reachable] == [CLOSED] * attempts
    assert [outcome for address, *_, outcome in lines if address != reachable] == ["unreachable"] * 2 * attempts
    assert stored_files(real_platform) == before


@pytest.mark.cluster
async def test_members_push_images_of_their_project_only(
    plane: ControlPlane, registry_platform: Platform, image: Image, tmp_path: Path
) -> None:
    archive = tmp_path / "victim.tar"
    roots = registry_platform.authority.bundle
    signer = RegistryTokenSigner(registry.token_key(registry_platform))
    issuer = RegistryIssuer(registry.writes_address(registry_platform), roots, signer)
    async with tenant_projects(plane, tmp_path, registry=issuer) as here:
        for caller, project, reason in (
            ("vera", here.ads, "Forbidden"),
            ("otto", here.ads, "ProjectUnknown"),
            ("dan", here.search, "ProjectUnknown"),
            ("dan", "library", "ProjectUnknown"),
            ("root", "library", "NoImageRegistry"),
            ("root", "pincompute", "NoImageRegistry"),
        ):
            refused = await here.request(caller, "POST", f"/projects/{project}/images/victim/tokens")
            assert refused.reason == reason, (caller, project)
        issued = await here.request("dan", "POST", f"/projects/{here.ads}/images/web/tokens")
        assert (issued.body["registry"], issued.body["repository"]) == (issuer.address, f"{here.ads}/web")
        assert issued.body["authority"] == roots.read_text()

        async def authorize(_: RegistryAccess) -> str:
            return str(issued.body["token"])

        async with ImageRegistry(issuer.address, roots.parent, authorize) as images:
            (loaded,) = await loading.load_images(images, archive, [f"{here.ads}/web:1"])
            assert loaded.name == f"{here.ads}/web:1"
            for name in (f"{here.ads}/other:1", f"{here.search}/web:1", "victim:1", "web:1"):
                with pytest.raises(Refused, match="HTTP 401"):
                    await loading.load_images(images, archive, [name])
    outcomes = {send_write(registry_platform, each, issued.body["token"]) for each in writes(image)}
    assert outcomes == {"401"}


@pytest.mark.cluster
async def test_desk_without_a_registry_issues_no_tokens(plane: ControlPlane, tmp_path: Path) -> None:
    async with tenant_projects(plane, tmp_path) as here:
        refused = await here.request("dan", "POST", f"/projects/{here.ads}/images/web/tokens")
        assert (refused.status, refused.reason) == (404, "NoImageRegistry")


class Shifted(SystemClock):
    """A clock that is fast or slow."""

    def __init__(self, shift: timedelta) -> None:
        self._shift = shift

    def now(self) -> datetime:
        return super().now() + self._shift


def write_access() -> RegistryAccess:
    return repository_access(VICTIM, write=True)


def send_write(platform: Platform, attempt: registry_attacker.Attempt, token: str) -> str:
    return send(registry.writes_address(platform), attempt, token)


def encoded(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
