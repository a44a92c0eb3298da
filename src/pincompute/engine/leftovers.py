"""Traces outside the platform's folder, at places that containerd, CNI and the kubelet do not let us choose."""

from __future__ import annotations

import hashlib
import socket
from pathlib import Path

from pincompute.engine import containers, kubelet
from pincompute.engine.platform import Platform

_LOG_LINKS = Path("/var/log/containers")
_POD_NETWORKS = Path("/var/lib/cni/results")
_SHIMS = Path("/run/containerd/s")
_DEVICE_PLUGINS = Path("/var/lib/kubelet/device-plugins")


def remove(platform: Platform) -> None:
    """Everything of this platform; what belongs to another, or to nobody, stays."""
    for trace in (*_shims(platform), *_pod_networks(platform), *_log_links(platform), *_device_plugins()):
        trace.unlink(missing_ok=True)
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
    return [file for file in _POD_NETWORKS.glob("*") if ours in file.read_text()]


def _log_links(platform: Platform) -> list[Path]:
    logs = kubelet.logs(platform)
    return [link for link in _LOG_LINKS.glob("*.log") if link.readlink().is_relative_to(logs)]


def _device_plugins() -> list[Path]:
    """All kubelets of a machine share this folder; it is nobody's when nobody listens there."""
    door = _DEVICE_PLUGINS / "kubelet.sock"
    return [] if _answers(door) else [door, _DEVICE_PLUGINS / "kubelet_internal_checkpoint"]


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(str(path))
        except OSError:
            return False
    return True


def _remove_empty(folder: Path) -> None:
    """With those above it that hold nothing else, as far as we may have made them."""
    for each in (folder, folder.parent):
        try:
            each.rmdir()
        except OSError:
            return
