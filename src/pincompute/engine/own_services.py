"""PinCompute's own parts: the desk, the operator, the agents, and log rotation."""

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
from pincompute.api.hosts import LOCALHOST
from pincompute.api.names import DESK, INSIGHT, OPERATOR, SIGNER
from pincompute.base.certificate_authority import Authority
from pincompute.base.platform_context import Context, write_context
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import EXTRA_MISSING
from pincompute.base.secure_files import write_private_file
from pincompute.engine import debug_credentials, identity, log_rotate, metrics_token, supervisor
from pincompute.engine.debian import find_program
from pincompute.engine.images import registry
from pincompute.engine.kubeconfigs import write_kubeconfig
from pincompute.engine.parts import HttpProbe, NoProbe, Part
from pincompute.engine.platform import Platform

INGRESS = "pincompute-ingress"
STORAGE = "pincompute-storage"

_USERS = (DESK, INSIGHT, OPERATOR, INGRESS, STORAGE, SIGNER)
DESK_PACKAGES = ("alembic", "asyncpg", "grpclib", "joserfc", "sqlalchemy")
_LOOPBACK = "127.0.0.1"
CODE_VARIABLE = "PINCOMPUTE_CODE"
"""Environment variable with the digest of the code that started a part."""


def issue_certificates(platform: Platform) -> None:
    for user in _USERS:
        hosts = (_LOOPBACK, "localhost") if user in (DESK, INSIGHT) else ()
        platform.authority.issue(user, groups=("pincompute:system",), hosts=hosts)
    identity.issue_signer_certificate(platform)
    web_authority(platform).establish()


def web_authority(platform: Platform) -> Authority:
    """CA of the services' hosts. Users add it to their browsers, so it can vouch for nothing but names of localhost."""
    return platform.authority.beneath("web", f"pincompute {platform.name}", LOCALHOST)


def write_files(platform: Platform) -> None:
    if not platform.bare:
        require_desk_packages()
    for user in _USERS:
        write_kubeconfig(platform, user)
    if not _token(platform).exists():
        renew_token(platform)
    if not platform.bare:
        metrics_token.write_token_files(platform.home)


def renew_token(platform: Platform) -> None:
    """Write a new local token. A running desk does not know it, so this is for a desk that is about to start."""
    write_private_file(_token(platform), secrets.token_urlsafe(32).encode())


def require_desk_packages() -> None:
    """Check before anything is started that the packages of the `desk` extra are installed."""
    missing = [each for each in DESK_PACKAGES if find_spec(each) is None]
    if missing:
        what = f"the desk needs Python packages that are not installed: {', '.join(missing)}"
        raise Refused(Problem(EXTRA_MISSING, what, next="pip install 'pincompute[desk]'"))


def save_context(platform: Platform) -> None:
    """Write the addresses and the token by which the CLI reaches this platform."""
    context = Context(
        name=platform.name,
        desk=f"https://{_LOOPBACK}:{platform.ports['desk']}",
        # Another user of this machine may hold the port while the desk is down, but has no certificate for it.
        authority=str(platform.authority.bundle),
        token=_token(platform).read_text(),
        kubeconfig=str(platform.home.kubeconfig),
        images=registry.writes_address(platform),
        certificates=str(platform.home.certificates),
        registry_key=str(registry.token_key(platform)),
        artifacts=str(platform.home.data / "artifacts"),
        web_authority=str(web_authority(platform).bundle) if find_program("nginx") else "",
        https_domain=f"{LOCALHOST}:{platform.ports['https']}",
    )
    write_context(platform.home.root.parent, context)


def own_service_stages(platform: Platform) -> list[list[Part]]:
    nginx = find_program("nginx")
    proxy = [_ingress(platform, nginx)] if nginx else []
    # Certificates are requested by the kubelet of a real node only.
    signer = [_signer(platform)] if platform.real else []
    ours = [] if platform.bare else [_desk(platform), _insight(platform), _operator(platform), *signer]
    return [[_log_rotate(platform)], [*ours, _storage(platform), *proxy]]


def _desk(platform: Platform) -> Part:
    authority = platform.authority
    part = server_part(
        "desk", platform, DESK, platform.ports["desk"],
        "--tls-certificate", authority.certificate(DESK), "--tls-key", authority.key(DESK),
        "--token-file", _token(platform), "--person", getuser(), "--database", platform.home.data / "desk.sqlite",
        "--folder", platform.home.data / "desk", "--artifacts", platform.home.data / "artifacts",
        "--metrics-listen", f"{_LOOPBACK}:{_desk_metrics_port(platform)}",
        "--metrics-token-file", metrics_token.token_file(platform.home),
        "--insight", _insight_url(platform),
        *(("--log-store", platform.log_store_url) if platform.log_store_url else ()),
        *(("--secret-store", platform.secret_store_url) if platform.secret_store_url else ()),
        *(("--config-store", platform.config_store_url) if platform.config_store_url else ()),
        *debug_credentials.desk_options(platform),
        *_registry_options(platform),
    )  # fmt: skip
    return part._replace(probe=HttpProbe(f"https://{_LOOPBACK}:{platform.ports['desk']}/healthz"))


def _insight(platform: Platform) -> Part:
    part = server_part(
        "insight", platform, INSIGHT, platform.ports["insight"],
        "--cluster", platform.name, "--database", platform.home.data / "insight.sqlite",
        "--certificate", platform.authority.certificate(INSIGHT), "--trust", platform.authority.bundle,
    )  # fmt: skip
    # The certificate of the desk, as insight answers nobody else.
    return part._replace(probe=HttpProbe(f"{_insight_url(platform)}/readyz", client_certificate=DESK))


def _insight_url(platform: Platform) -> str:
    return f"https://{_LOOPBACK}:{platform.ports['insight']}"


def _registry_options(platform: Platform) -> tuple[object, ...]:
    # A platform without docker-registry has no key.
    if not (key := registry.token_key(platform)).exists():
        return ()
    address, roots = registry.writes_address(platform), platform.authority.bundle
    return ("--registry", address, "--registry-key", key, "--registry-roots", roots)


def _operator(platform: Platform) -> Part:
    part = server_part("operator", platform, OPERATOR, platform.ports["operator"], *_token_option(platform))
    # /healthz is already green while the caches fill; /readyz is green when they are complete.
    return part._replace(probe=HttpProbe(f"http://{_LOOPBACK}:{platform.ports['operator']}/readyz"))


def _ingress(platform: Platform, nginx: Path) -> Part:
    folder = platform.home.data / "ingress"
    https = ("--https", f"{_LOOPBACK}:{platform.ports['https']}", "--authority", web_authority(platform).folder)
    options = ("--folder", folder, "--nginx", nginx, *https, *(() if platform.real else ("--simulated",)))
    return server_part("agent ingress", platform, INGRESS, platform.ports["http"], *options)._replace(reexecs=True)


def _storage(platform: Platform) -> Part:
    folder = platform.home.volumes
    node = ("--node", platform.node_name) if platform.real else ()
    token = () if platform.bare else _token_option(platform)
    return server_part("agent storage", platform, STORAGE, platform.ports["storage"], "--folder", folder, *node, *token)


def _signer(platform: Platform) -> Part:
    authority = identity.identity_authority(platform)
    files = ("--certificate", authority.certificate(SIGNER), "--key", authority.key(SIGNER))
    return server_part("agent signer", platform, SIGNER, platform.ports["signer"], *files, *_token_option(platform))


def _token_option(platform: Platform) -> tuple[object, ...]:
    return "--token-file", metrics_token.token_file(platform.home)


def metrics_urls(platform: Platform) -> dict[str, str]:
    """URLs of the metrics that require the token, by part."""
    if platform.bare:
        return {}
    ports = {"operator": platform.ports["operator"], "desk": _desk_metrics_port(platform)}
    ports["storage"] = platform.ports["storage"]
    if platform.real:
        ports["signer"] = platform.ports["signer"]
    if "prometheus" in platform.addons:
        ports["metrics"] = platform.ports["metrics"]
    return {part: f"http://{_LOOPBACK}:{port}/metrics" for part, port in ports.items()}


def _desk_metrics_port(platform: Platform) -> int:
    # A platform of 0.2 that is not started again yet has no port of this name.
    return platform.ports.get("desk-metrics", 0)


def _log_rotate(platform: Platform) -> Part:
    # Run as a file and isolated from site-packages, as it imports the standard library only.
    command = (sys.executable, "-IS", str(log_rotate.__file__), str(platform.home.logs))
    return Part("log-rotate", command, NoProbe(), version=__version__)


def supervisor_part(platform: Platform) -> Part:
    """Started last, so that it finds every part in the record."""
    command = (sys.executable, "-m", supervisor.__name__, str(platform.home.root))
    return Part(supervisor.SUPERVISOR, command, NoProbe(), {CODE_VARIABLE: code_digest()}, version=__version__)


def server_part(command: str, platform: Platform, user: str, port: int, *options: object) -> Part:
    """A process of ours that serves `/healthz`, with a kubeconfig of its own."""
    listen = f"{_LOOPBACK}:{port}"
    arguments = ("--kubeconfig", platform.kubeconfig_of(user), "--listen", listen, *options)
    return Part(
        command.rpartition(" ")[2],
        (sys.executable, "-m", "pincompute", *command.split(), *map(str, arguments)),
        HttpProbe(f"http://{listen}/healthz"),
        # A change of our code changes the fingerprint of the part, so that `pin up` restarts it.
        environment={CODE_VARIABLE: code_digest()},
        version=__version__,
    )


@cache
def code_digest() -> str:
    """Digest of every source file of the package."""
    package = Path(pincompute.__file__).parent
    digest = hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _token(platform: Platform) -> Path:
    return platform.home.root / "desk.token"
