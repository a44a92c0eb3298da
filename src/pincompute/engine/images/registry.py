"""The platform's image registry: two processes over one folder, which separate reading from writing.

The nodes' process is read-only and closes every connection without the client certificate of the nodes' containerd, so
that neither pods nor local users read a byte. Images are written, and listed by the CLI, on loopback with a token that
names the repository. Neither process deletes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from pincompute.base.certificate_authority import Authority
from pincompute.base.registry_token import ISSUER, SERVICE, RegistryTokenSigner
from pincompute.engine.config_files import write_if_changed
from pincompute.engine.debian import ensure_programs, find_program, program_version
from pincompute.engine.parts import HttpProbe, Part, SocketProbe
from pincompute.engine.platform import Platform
from pincompute.kube.image_registry import ImageRegistry, sign_access
from pincompute.objects.content import content_hash

NODES = "registry"
"""Part, port and certificate of the nodes' process."""
WRITES = "registry-writes"
"""Part, port and certificate of the process that writes."""
PROGRAM = "docker-registry"
_NODE = "node"
_TOKENS = "tokens"
_LOOPBACK = "127.0.0.1"


def registry_parts(platform: Platform) -> list[Part]:
    """The process that writes and, with a real node, the nodes' process."""
    # The record of an earlier version has no port for writes until the next `pin up`.
    names = [NODES] if platform.real else []
    return [_part(platform, each) for each in (*names, WRITES) if each in platform.ports]


def prepare_registry(platform: Platform) -> None:
    """Fetch the program, issue the certificates, and write the configurations: JSON, which is valid YAML."""
    ensure_programs(PROGRAM)
    platform.authority.issue(NODES, hosts=(platform.address,))
    platform.authority.issue(WRITES, hosts=(_LOOPBACK,))
    own = registry_authority(platform)
    own.establish()
    own.issue(_NODE)
    own.issue(_TOKENS)
    _data(platform).mkdir(parents=True, exist_ok=True, mode=0o700)
    for name, configuration in ((NODES, nodes_configuration(platform)), (WRITES, writes_configuration(platform))):
        content = msgspec.json.format(msgspec.json.encode(configuration))
        write_if_changed(_config(platform, name), content.decode())


def nodes_address(platform: Platform) -> str:
    """Address from which nodes pull."""
    return f"{platform.address}:{platform.ports[NODES]}"


def writes_address(platform: Platform) -> str:
    """Address at which images are loaded and listed, on this machine only."""
    return f"{_LOOPBACK}:{platform.ports[WRITES]}"


def node_credentials(platform: Platform) -> tuple[Path, Path]:
    """Client certificate and key of the nodes' containerd."""
    own = registry_authority(platform)
    return own.certificate(_NODE), own.key(_NODE)


def token_key(platform: Platform) -> Path:
    """Key that signs the tokens of the registry."""
    return registry_authority(platform).key(_TOKENS)


def open_registry(platform: Platform) -> ImageRegistry:
    """The registry as the platform's owner, who may write every repository."""
    authorize = sign_access(RegistryTokenSigner(token_key(platform)))
    return ImageRegistry(writes_address(platform), platform.home.certificates, authorize)


def nodes_configuration(platform: Platform) -> dict[str, Any]:
    return {
        "version": "0.1",
        "log": _LOG,
        "storage": {
            "filesystem": {"rootdirectory": str(_data(platform))},
            "delete": {"enabled": False},
            # Purging abandoned uploads would be a write; the other process does it.
            "maintenance": {"readonly": {"enabled": True}, "uploadpurging": {"enabled": False}},
        },
        "http": {
            "addr": nodes_address(platform),
            "tls": _tls(platform, NODES) | {"clientcas": [str(registry_authority(platform).bundle)]},
        },
    }


def writes_configuration(platform: Platform) -> dict[str, Any]:
    token = {
        "realm": f"https://{writes_address(platform)}/",
        "service": SERVICE,
        "issuer": ISSUER,
        # The certificate of the key itself. With the authority here, the node's key could sign tokens, too.
        "rootcertbundle": str(registry_authority(platform).certificate(_TOKENS)),
    }
    return {
        "version": "0.1",
        "log": _LOG,
        "storage": {"filesystem": {"rootdirectory": str(_data(platform))}, "delete": {"enabled": False}},
        "auth": {"token": token},
        "http": {"addr": writes_address(platform), "tls": _tls(platform, WRITES)},
    }


_LOG = {"level": "warn", "accesslog": {"disabled": True}}


def _part(platform: Platform, name: str) -> Part:
    found = find_program(PROGRAM)
    assert found, "prepare_registry() has fetched it"
    own = registry_authority(platform)
    loaded = [_config(platform, name), platform.authority.certificate(name), own.bundle, own.certificate(_TOKENS)]
    return Part(
        name,
        (str(found), "serve", str(_config(platform, name))),
        _probe(platform, name),
        # The registry reads its files at the start only, so changed ones must change the fingerprint.
        {"PINCOMPUTE_FILES": content_hash("".join(each.read_text() for each in loaded if each.exists()))},
        version=program_version(PROGRAM),
    )


def _probe(platform: Platform, name: str) -> HttpProbe | SocketProbe:
    if name == NODES:
        # HTTP would need a client certificate, which only the nodes' containerd has.
        return SocketProbe(address=platform.address, port=platform.ports[NODES])
    # The root answers without a token, and has no content.
    return HttpProbe(f"https://{writes_address(platform)}/")


def _tls(platform: Platform, name: str) -> dict[str, object]:
    return {"certificate": str(platform.authority.certificate(name)), "key": str(platform.authority.key(name))}


def registry_authority(platform: Platform) -> Authority:
    """Authority of the registry's clients alone: no other certificate of the platform opens the nodes' process."""
    return platform.authority.beneath("registry", f"{platform.name}-registry")


def _config(platform: Platform, name: str) -> Path:
    return platform.home.configs / f"{name}.json"


def _data(platform: Platform) -> Path:
    return platform.home.data / "registry"
