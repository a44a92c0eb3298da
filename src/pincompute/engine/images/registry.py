"""The platform's image registry, from which its nodes pull all images."""

from __future__ import annotations

from pathlib import Path

import msgspec

from pincompute.engine.config_files import write_if_changed
from pincompute.engine.debian import ensure_programs, find_program, program_version
from pincompute.engine.parts import HttpProbe, Part
from pincompute.engine.platform import Platform
from pincompute.objects.content import content_hash

NAME = "registry"
PROGRAM = "docker-registry"


def registry_parts(platform: Platform) -> list[Part]:
    found = find_program(PROGRAM)
    assert found, "prepare_registry() has fetched it"
    command = (str(found), "serve", str(_config(platform)))
    # The registry reads its certificate at the start only, so a renewed one must change the fingerprint.
    certificate = {"PINCOMPUTE_CERTIFICATE": content_hash(platform.authority.certificate(NAME).read_text())}
    return [
        Part(
            NAME,
            command,
            HttpProbe(f"https://{registry_address(platform)}/v2/"),
            certificate,
            version=program_version(PROGRAM),
        )
    ]


def prepare_registry(platform: Platform) -> None:
    """Fetch the program, issue its certificate, and write its configuration: JSON, which is valid YAML."""
    ensure_programs(PROGRAM)
    platform.authority.issue(NAME, hosts=(platform.address,))
    _data(platform).mkdir(parents=True, exist_ok=True, mode=0o700)
    content = msgspec.json.format(msgspec.json.encode(_configuration(platform)))
    write_if_changed(_config(platform), content.decode())


def registry_address(platform: Platform) -> str:
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
            "addr": registry_address(platform),
            "tls": {"certificate": str(authority.certificate(NAME)), "key": str(authority.key(NAME))},
        },
    }


def _config(platform: Platform) -> Path:
    return platform.home.configs / "registry.json"


def _data(platform: Platform) -> Path:
    return platform.home.data / "registry"
