"""Removes files outside the platform's folder, at paths that are fixed by containerd, CNI and the kubelet."""

from __future__ import annotations

import hashlib
from pathlib import Path

from pincompute.engine.nodes import containerd, kubelet
from pincompute.engine.nodes.network import platform_namespaces
from pincompute.engine.platform import Platform

_LOG_LINKS = Path("/var/log/containers")
_POD_NETWORKS = Path("/var/lib/cni/results")
_SHIMS = Path("/run/containerd/s")
_DEVICE_PLUGINS = Path("/var/lib/kubelet/device-plugins")


def remove_leftovers(platform: Platform) -> None:
    """Remove the files of this platform, and with the last platform the shared folders."""
    for trace in (*_shims(platform), *_pod_networks(platform), *_log_links(platform)):
        trace.unlink(missing_ok=True)
    if _is_last(platform):
        for name in ("kubelet.sock", "kubelet_internal_checkpoint"):
            (_DEVICE_PLUGINS / name).unlink(missing_ok=True)
        for folder in (_LOG_LINKS, _POD_NETWORKS, _SHIMS, _DEVICE_PLUGINS):
            _remove_empty(folder)


def _shims(platform: Platform) -> list[Path]:
    """Sockets of containerd shims, one for each pod, named by a digest of containerd's address and the pod's id."""
    bundles = containerd.containerd_state(platform) / "io.containerd.runtime.v2.task"
    serves = [f"{containerd.containerd_socket(platform)}/{each.relative_to(bundles)}" for each in bundles.glob("*/*")]
    return [_SHIMS / hashlib.sha256(each.encode()).hexdigest() for each in serves]


def _pod_networks(platform: Platform) -> list[Path]:
    """CNI result files that contain a path of this platform."""
    ours = str(containerd.containerd_state(platform))
    return [file for file in _POD_NETWORKS.glob("*") if ours in _content(file)]


def _log_links(platform: Platform) -> list[Path]:
    ours = str(kubelet.pod_log_folder(platform))
    return [link for link in _LOG_LINKS.glob("*.log") if _content(link).startswith(f"{ours}/")]


def _content(file: Path) -> str:
    """Target of a link or content of a file; empty if another platform has removed it meanwhile."""
    try:
        return str(file.readlink()) if file.is_symlink() else file.read_text()
    except FileNotFoundError:
        return ""


def _is_last(platform: Platform) -> bool:
    """Whether no other platform has a real node: each has a network namespace."""
    return all(network == platform.network_namespace for network in platform_namespaces())


def _remove_empty(folder: Path) -> None:
    """Remove a folder and its parent, if they are empty."""
    for path in (folder, folder.parent):
        try:
            path.rmdir()
        except OSError:
            return
