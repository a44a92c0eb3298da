"""Who we are inside a pod: what Kubernetes puts there for every container."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import KUBECONFIG_INVALID
from pincompute.kube.access import Access
from pincompute.kube.kubeconfig import load

FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def load_or_in_cluster(kubeconfig: Path | None) -> Access:
    """By a kubeconfig where one is named; else as the service account of the pod that we are in."""
    return load(kubeconfig) if kubeconfig else in_cluster()


def in_cluster(folder: Path = FOLDER, environment: Mapping[str, str] = os.environ) -> Access:
    host, port = environment.get("KUBERNETES_SERVICE_HOST", ""), environment.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise _refused("no kubeconfig is named, and this is not a pod: KUBERNETES_SERVICE_HOST and _PORT are not set")
    token = folder / "token"
    try:
        authority = (folder / "ca.crt").read_bytes()
        namespace = (folder / "namespace").read_text().strip()
        # It is renewed all the time, and read again for each request; only that it is there is seen here.
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
    )


def _refused(what: str, file: str = "", note: str = "") -> Refused:
    return Refused(Problem(KUBECONFIG_INVALID, what, Where(file=file), note, "pass --kubeconfig FILE"))
