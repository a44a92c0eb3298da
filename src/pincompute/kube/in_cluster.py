"""Access from inside a pod, by the service account that Kubernetes mounts into every container."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import KUBECONFIG_INVALID
from pincompute.kube.access import Access
from pincompute.kube.kubeconfig import load_kubeconfig

SERVICE_ACCOUNT_FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def load_or_in_cluster(kubeconfig: Path | None) -> Access:
    """Access by the given kubeconfig, or without one by the service account of this pod."""
    return load_kubeconfig(kubeconfig) if kubeconfig else in_cluster()


def in_cluster(folder: Path = SERVICE_ACCOUNT_FOLDER, environment: Mapping[str, str] = os.environ) -> Access:
    """Access by this pod's service account. Refused outside a pod."""
    host, port = environment.get("KUBERNETES_SERVICE_HOST", ""), environment.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise _refused("no kubeconfig given, and this is not a pod: KUBERNETES_SERVICE_HOST and _PORT are not set")
    token = folder / "token"
    try:
        authority = (folder / "ca.crt").read_bytes()
        namespace = (folder / "namespace").read_text().strip()
        # The kubelet renews the token, so that it is read again for each request. Here it only must be readable.
        token.read_bytes()
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise _refused("the pod's service account cannot be read", str(error.filename), why) from error
    return Access(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        authority=authority,
        token_file=token,
        namespace=namespace or "default",
        context="in-cluster",
        in_pod=True,
    )


def _refused(what: str, file: str = "", note: str = "") -> Refused:
    return Refused(Problem(KUBECONFIG_INVALID, what, Where(file=file), note, "pass --kubeconfig FILE"))
