"""The platform's own registry of images, from which its nodes take every image."""

from __future__ import annotations

import msgspec

from pincompute.engine.debian import bring, program
from pincompute.engine.parts import Part, Web
from pincompute.engine.platform import Platform

NAME = "registry"


def parts(platform: Platform) -> list[Part]:
    found = program("docker-registry")
    assert found, "prepare() brought it"
    config = platform.home.configs / "registry.json"
    return [Part(NAME, (str(found), "serve", str(config)), Web(f"https://{address(platform)}/v2/"))]


def prepare(platform: Platform) -> None:
    """Bring the program and its certificate, and lay down its configuration (JSON is YAML, which it reads)."""
    bring("docker-registry")
    platform.authority.issue(NAME, hosts=(platform.address,))
    data = platform.home.data / "registry"
    data.mkdir(parents=True, exist_ok=True)
    platform.home.configs.mkdir(parents=True, exist_ok=True)
    content = msgspec.json.format(msgspec.json.encode(_configuration(platform)))
    (platform.home.configs / "registry.json").write_bytes(content)


def address(platform: Platform) -> str:
    return f"{platform.address}:{platform.ports[NAME]}"


def _configuration(platform: Platform) -> dict[str, object]:
    authority = platform.authority
    return {
        "version": "0.1",
        "log": {"level": "warn", "accesslog": {"disabled": True}},
        "storage": {
            "filesystem": {"rootdirectory": str(platform.home.data / "registry")},
            "delete": {"enabled": True},
        },
        "http": {
            "addr": address(platform),
            "tls": {"certificate": str(authority.certificate(NAME)), "key": str(authority.key(NAME))},
        },
    }
