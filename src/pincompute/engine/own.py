"""Our own processes: the desk, the operator, the agents, and the keeper of the logs."""

from __future__ import annotations

import hashlib
import secrets
import sys
from functools import cache
from getpass import getuser
from importlib.util import find_spec
from pathlib import Path

import pincompute
from pincompute import __version__
from pincompute.api.names import DESK, OPERATOR, SIGNER
from pincompute.base.certificates import write_private
from pincompute.base.context import Context, write_context
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import EXTRA_MISSING
from pincompute.engine import identity, keeper
from pincompute.engine.debian import program
from pincompute.engine.kubeconfigs import write_kubeconfig
from pincompute.engine.parts import Alive, Part, Web
from pincompute.engine.platform import Platform

INGRESS = "pincompute-ingress"
STORAGE = "pincompute-storage"

_USERS = (DESK, OPERATOR, INGRESS, STORAGE, SIGNER)
DESK_NEEDS = ("alembic", "asyncpg", "joserfc", "sqlalchemy")
_LOOPBACK = "127.0.0.1"


def certify(platform: Platform) -> None:
    for user in _USERS:
        platform.authority.issue(user, groups=("pincompute:system",))
    identity.certify(platform)


def prepare(platform: Platform) -> None:
    if not platform.bare:
        require_desk()
    for user in _USERS:
        write_kubeconfig(platform, user)
    if not _token(platform).exists():
        write_private(_token(platform), secrets.token_urlsafe(32).encode())


def require_desk() -> None:
    """What its record needs is an extra of our package: told before anything is started."""
    missing = [each for each in DESK_NEEDS if find_spec(each) is None]
    if missing:
        what = f"the desk of a platform needs {', '.join(missing)}"
        raise Refused(Problem(EXTRA_MISSING, what, next="pip install 'pincompute[desk]'"))


def announce(platform: Platform) -> None:
    """Tell the hand where this platform is found."""
    context = Context(
        name=platform.name,
        desk=f"http://{_LOOPBACK}:{platform.ports['desk']}",
        token=_token(platform).read_text(),
        kubeconfig=str(platform.home.kubeconfig),
        images=f"{platform.address}:{platform.ports['registry']}",
        certificates=str(platform.home.certificates),
        artifacts=str(platform.home.data / "artifacts"),
    )
    write_context(platform.home.root.parent, context)


def stages(platform: Platform) -> list[list[Part]]:
    nginx = program("nginx")
    proxy = [_ingress(platform, nginx)] if nginx else []
    # Only the kubelet of a real node asks for certificates.
    signer = [_signer(platform)] if platform.real else []
    ours = [] if platform.bare else [_desk(platform), _operator(platform), *signer]
    return [[_keeper(platform)], [*ours, _storage(platform), *proxy]]


def _desk(platform: Platform) -> Part:
    return _server(
        "desk", platform, DESK, platform.ports["desk"],
        "--token-file", _token(platform), "--person", getuser(), "--database", platform.home.data / "desk.sqlite",
        "--folder", platform.home.data / "desk", "--artifacts", platform.home.data / "artifacts",
        *(("--log-store", platform.log_store) if platform.log_store else ()),
    )  # fmt: skip


def _operator(platform: Platform) -> Part:
    part = _server("operator", platform, OPERATOR, platform.ports["operator"])
    # Healthy it is also while it has not yet seen all that there is.
    return part._replace(ready=Web(f"http://{_LOOPBACK}:{platform.ports['operator']}/readyz"))


def _ingress(platform: Platform, nginx: Path) -> Part:
    folder = platform.home.data / "ingress"
    words = ("--folder", folder, "--nginx", nginx, *(() if platform.real else ("--simulated",)))
    return _server("agent ingress", platform, INGRESS, platform.ports["http"], *words)._replace(renews=True)


def _storage(platform: Platform) -> Part:
    folder = platform.home.data / "volumes"
    node = ("--node", platform.node_name) if platform.real else ()
    return _server("agent storage", platform, STORAGE, platform.ports["storage"], "--folder", folder, *node)


def _signer(platform: Platform) -> Part:
    own = identity.authority(platform)
    files = ("--certificate", own.certificate(SIGNER), "--key", own.key(SIGNER))
    return _server("agent signer", platform, SIGNER, platform.ports["signer"], *files)


def _keeper(platform: Platform) -> Part:
    # Run as a bare file: it needs none of our packages, and so takes a third of the memory.
    command = (sys.executable, "-IS", str(keeper.__file__), str(platform.home.logs))
    return Part("keeper", command, Alive(), version=__version__)


def _server(command: str, platform: Platform, user: str, port: int, *words: object) -> Part:
    listen = f"{_LOOPBACK}:{port}"
    arguments = ("--kubeconfig", platform.config(user), "--listen", listen, *words)
    return Part(
        command.rpartition(" ")[2],
        (sys.executable, "-m", "pincompute", *command.split(), *map(str, arguments)),
        Web(f"http://{listen}/healthz"),
        # Whoever changes our code and says `pin up` means the new one: a part whose words differ is started anew.
        environment={"PINCOMPUTE_CODE": code()},
        version=__version__,
    )


@cache
def code() -> str:
    """A digest of all that our processes run."""
    package = Path(pincompute.__file__).parent
    digest = hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _token(platform: Platform) -> Path:
    return platform.home.root / "desk.token"
