"""The registrar of the platform: registers the pods of its node in ZooKeeper, and serves their endpoints."""

from __future__ import annotations

import secrets
from importlib.util import find_spec
from pathlib import Path

from pincompute.api.names import REGISTRAR
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import EXTRA_MISSING
from pincompute.base.secure_files import write_private_file
from pincompute.engine.identity import issue_part_identity
from pincompute.engine.kubeconfigs import write_kubeconfig
from pincompute.engine.own_services import server_part
from pincompute.engine.parts import Part
from pincompute.engine.platform import Platform
from pincompute.engine.zookeeper import server
from pincompute.kube.resource import ENDPOINT_SLICES, SERVICES

NAME = "registrar"
_RESOURCES = {each.kind: each for each in (SERVICES, ENDPOINT_SLICES)}


def is_enabled(platform: Platform) -> bool:
    """Whether the platform has an ensemble, of its own or another one."""
    return not platform.bare and (bool(platform.zookeeper) or server.NAME in platform.addons)


def has_own_ensemble(platform: Platform) -> bool:
    """Whether it runs ZooKeeper; the address of another one takes precedence."""
    return is_enabled(platform) and not platform.zookeeper


def require_client() -> None:
    """Check before anything is started that the client of ZooKeeper is installed."""
    if find_spec("kazoo") is None:
        what = "the registrar needs a Python package that is not installed: kazoo"
        raise Refused(Problem(EXTRA_MISSING, what, next="pip install 'pincompute[traffic]'"))


def prepare_registrar(platform: Platform) -> None:
    require_client()
    platform.authority.issue(REGISTRAR, groups=("pincompute:system",))
    write_kubeconfig(platform, REGISTRAR)
    if not password_file(platform).exists():
        write_private_file(password_file(platform), secrets.token_urlsafe(24).encode())
    if has_own_ensemble(platform):
        server.write_zookeeper_files(platform)


def password_file(platform: Platform) -> Path:
    """File with the password of registrars. For an ensemble that others use, too, its owner writes it."""
    return platform.home.root / "zookeeper.password"


def registrar_stages(platform: Platform) -> list[list[Part]]:
    zookeeper = server.zookeeper_stages(platform) if has_own_ensemble(platform) else [[]]
    return [*zookeeper, [_registrar(platform)]]


def _registrar(platform: Platform) -> Part:
    options: list[object] = ["--password-file", password_file(platform)]
    if has_own_ensemble(platform):
        options += ["--zookeeper", server.ensemble_address(platform), "--own-ensemble"]
    else:
        options += ["--zookeeper", platform.zookeeper]
    if platform.real:
        options += ["--node", platform.node_name, "--identity", issue_part_identity(platform, NAME)]
        options += ["--listen-to-pods", f"{platform.address}:{platform.ports['registrar-pods']}"]
    return server_part(f"agent {NAME}", platform, REGISTRAR, platform.ports[NAME], *options)
