"""Debian's ZooKeeper as one part of the platform: on loopback, with a bounded heap, and with few snapshots."""

from __future__ import annotations

from pathlib import Path

from pincompute.engine.config_files import write_if_changed
from pincompute.engine.debian import ensure_programs, find_program, unpack_packages, unpacked_folder
from pincompute.engine.parts import Part, SocketProbe
from pincompute.engine.platform import Platform

NAME = "zookeeper"
_LOOPBACK = "127.0.0.1"
_LIBRARY = "libzookeeper-java"
_JARS = {
    _LIBRARY: ("zookeeper", "zookeeper-jute"),
    "libslf4j-java": ("slf4j-api", "slf4j-simple"),
    "libdropwizard-metrics-java": ("metrics-core",),
    "libnetty-java": ("netty-all",),
    "libsnappy-java": ("snappy-java",),
}
"""Packages with the files that the server loads. They contain no programs, so they are unpacked and not installed."""
_PROPERTIES = {
    # Registrars write their members again, so a machine that loses power loses nothing.
    "zookeeper.forceSync": "no",
    "zookeeper.preAllocSize": "1024",
    "org.slf4j.simpleLogger.defaultLogLevel": "warn",
    "org.slf4j.simpleLogger.showDateTime": "true",
}
MAX_HEAP = "128m"
_SETTINGS = {
    "tickTime": 2000,
    "maxSessionTimeout": 40_000,
    "maxClientCnxns": 200,
    "admin.enableServer": "false",
    "autopurge.snapRetainCount": 3,
    "autopurge.purgeInterval": 1,
}


def ensure_zookeeper() -> Path:
    """Folder with its packages; downloads them, and installs Java, if necessary."""
    ensure_programs("java")
    unpack_packages(_JARS)
    return unpacked_folder(_LIBRARY)


def write_zookeeper_files(platform: Platform) -> None:
    folder = platform.home.data / NAME
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_if_changed(_configuration_file(platform), zookeeper_configuration(folder, _port(platform)))


def zookeeper_configuration(folder: Path, port: int) -> str:
    settings = {**_SETTINGS, "dataDir": folder, "clientPortAddress": _LOOPBACK, "clientPort": port}
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def zookeeper_stages(platform: Platform) -> list[list[Part]]:
    probe = SocketProbe(address=_LOOPBACK, port=_port(platform))
    version = unpacked_folder(_LIBRARY).name.partition("_")[2]
    return [[Part(NAME, zookeeper_command(_configuration_file(platform)), probe, version=version)]]


def zookeeper_command(configuration: Path) -> tuple[str, ...]:
    """Java without the scripts of Debian's package `zookeeper`, which needs a desktop's Java and installs a user."""
    jars = [unpacked_folder(package) / f"usr/share/java/{each}.jar" for package in _JARS for each in _JARS[package]]
    return (
        str(find_program("java") or "java"),
        f"-Xmx{MAX_HEAP}",
        "-XX:+UseSerialGC",
        "-XX:+ExitOnOutOfMemoryError",
        *(f"-D{name}={value}" for name, value in _PROPERTIES.items()),
        "-cp",
        ":".join(map(str, jars)),
        # Unlike ZooKeeperServerMain, it purges old snapshots.
        "org.apache.zookeeper.server.quorum.QuorumPeerMain",
        str(configuration),
    )


def ensemble_address(platform: Platform) -> str:
    return f"{_LOOPBACK}:{_port(platform)}"


def _port(platform: Platform) -> int:
    return platform.ports.get(NAME, 0)


def _configuration_file(platform: Platform) -> Path:
    return platform.home.configs / "zookeeper.properties"
