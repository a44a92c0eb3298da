"""Traces outside the platform's folder, at places that containerd, CNI and the kubelet do not let us choose."""

from __future__ import annotations

import hashlib
from pathlib import Path

from pincompute.engine.nodes import containers, kubelet
from pincompute.engine.nodes.network import namespaces
from pincompute.engine.platform import Platform

_LOG_LINKS = Path("/var/log/containers")
_POD_NETWORKS = Path("/var/lib/cni/results")
_SHIMS = Path("/run/containerd/s")
_DEVICE_PLUGINS = Path("/var/lib/kubelet/device-plugins")


def remove(platform: Platform) -> None:
    """Everything of this platform. What all platforms share goes with the last of them."""
    for trace in (*_shims(platform), *_pod_networks(platform), *_log_links(platform)):
        trace.unlink(missing_ok=True)
    if _last(platform):
        for name in ("kubelet.sock", "kubelet_internal_checkpoint"):
            (_DEVICE_PLUGINS / name).unlink(missing_ok=True)
        for folder in (_LOG_LINKS, _POD_NETWORKS, _SHIMS, _DEVICE_PLUGINS):
            _remove_empty(folder)


def _shims(platform: Platform) -> list[Path]:
    """A shim's socket is called by a digest of whom it serves, and there is one a pod."""
    bundles = containers.state(platform) / "io.containerd.runtime.v2.task"
    serves = [f"{containers.socket(platform)}/{each.relative_to(bundles)}" for each in bundles.glob("*/*")]
    return [_SHIMS / hashlib.sha256(each.encode()).hexdigest() for each in serves]


def _pod_networks(platform: Platform) -> list[Path]:
    """Each names the network namespace that it speaks of."""
    ours = str(containers.state(platform))
    return [file for file in _POD_NETWORKS.glob("*") if ours in _content(file)]


def _log_links(platform: Platform) -> list[Path]:
    ours = str(kubelet.logs(platform))
    return [link for link in _LOG_LINKS.glob("*.log") if _content(link).startswith(f"{ours}/")]


def _content(file: Path) -> str:
    """Where a link leads, or what a file says; nothing, when another platform has just removed its own."""
    try:
        return str(file.readlink()) if file.is_symlink() else file.read_text()
    except FileNotFoundError:
        return ""


def _last(platform: Platform) -> bool:
    """Every real node on this machine has a network."""
    return all(network == platform.namespace for network in namespaces())


def _remove_empty(folder: Path) -> None:
    """With the one above it, where that holds nothing else."""
    for each in (folder, folder.parent):
        try:
            each.rmdir()
        except OSError:
            return
