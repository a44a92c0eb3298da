"""The platform's own registry of images, from which its nodes take every image."""

from __future__ import annotations

from pathlib import Path

import msgspec

from pincompute.engine.debian import bring, program, version
from pincompute.engine.files import write_changed
from pincompute.engine.parts import Part, Web
from pincompute.engine.platform import Platform
from pincompute.objects.content import digest

NAME = "registry"
PROGRAM = "docker-registry"


def parts(platform: Platform) -> list[Part]:
    found = program(PROGRAM)
    assert found, "prepare() brought it"
    command = (str(found), "serve", str(_config(platform)))
    # It reads its certificate only once, so a renewed one must start it anew.
    certificate = {"PINCOMPUTE_CERTIFICATE": digest(platform.authority.certificate(NAME).read_text())}
    return [Part(NAME, command, Web(f"https://{address(platform)}/v2/"), certificate, version=version(PROGRAM))]


def prepare(platform: Platform) -> None:
    """Bring the program and its certificate, and lay down its configuration: JSON, which is YAML too."""
    bring(PROGRAM)
    platform.authority.issue(NAME, hosts=(platform.address,))
    _data(platform).mkdir(parents=True, exist_ok=True, mode=0o700)
    content = msgspec.json.format(msgspec.json.encode(_configuration(platform)))
    write_changed(_config(platform), content.decode())


def address(platform: Platform) -> str:
    return f"{platform.address}:{platform.ports[NAME]}"


def _configuration(platform: Platform) -> dict[str, object]:
    authority = platform.authority
    return {
        "version": "0.1",
        "log": {"level": "warn", "accesslog": {"disabled": True}},
        "storage": {
            "filesystem": {"rootdirectory": str(_data(platform))},
            "delete": {"enabled": True},
        },
        "http": {
            "addr": address(platform),
            "tls": {"certificate": str(authority.certificate(NAME)), "key": str(authority.key(NAME))},
        },
    }


def _config(platform: Platform) -> Path:
    return platform.home.configs / "registry.json"


def _data(platform: Platform) -> Path:
    return platform.home.data / "registry"
