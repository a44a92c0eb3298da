"""The control plane: etcd, API server, controller manager and scheduler, each with a certificate of its own."""

from __future__ import annotations

import yaml

from pincompute.base.certificates import write_private
from pincompute.engine.build import pinned
from pincompute.engine.kubeconfigs import write_kubeconfig
from pincompute.engine.parts import Part, Web
from pincompute.engine.platform import Platform

ETCD = "etcd"
API_SERVER = "kube-apiserver"
MANAGER = "kube-controller-manager"
SCHEDULER = "kube-scheduler"

LOOPBACK = "127.0.0.1"
GATES = "PodCertificateRequest=true,ClusterTrustBundle=true,ClusterTrustBundleProjection=true"

# 120,000 pods outgrow etcd's usual 2 GiB.
_ETCD_QUOTA = 8 << 30
# The usual 20 requests a second make a rollout of 200 pods take ten seconds.
_QUERIES = (1000, 2000)


def certify(platform: Platform) -> None:
    issue = platform.authority.issue
    here = (LOOPBACK, "localhost")
    issue("admin", groups=("system:masters",))
    issue(ETCD, hosts=here)
    issue(API_SERVER, hosts=(*here, platform.address, platform.service_range.replace(".0/24", ".1"), *_api_names()))
    issue(MANAGER, f"system:{MANAGER}", hosts=here)
    issue(SCHEDULER, f"system:{SCHEDULER}", hosts=here)
    platform.authority.issue_key("service-accounts")


def prepare(platform: Platform) -> None:
    """The files that the parts read."""
    write_kubeconfig(platform, "admin", platform.home.kubeconfig)
    for user in (MANAGER, SCHEDULER):
        write_kubeconfig(platform, user)
    for name, content in (("audit", _audit()), ("scheduler", _scheduler(platform))):
        write_private(platform.home.configs / f"{name}.yaml", yaml.safe_dump(content, sort_keys=False).encode())


def stages(platform: Platform) -> list[list[Part]]:
    return [[etcd(platform), api_server(platform)], [manager(platform), scheduler(platform)]]


def etcd(platform: Platform) -> Part:
    clients = f"https://{LOOPBACK}:{platform.ports['etcd']}"
    peers = f"https://{LOOPBACK}:{platform.ports['etcd-peers']}"
    files = {
        "trusted-ca-file": platform.authority.bundle,
        "cert-file": platform.authority.certificate(ETCD),
        "key-file": platform.authority.key(ETCD),
    }
    return _part(
        platform,
        ETCD,
        Web(f"{clients}/health", client=API_SERVER),
        {
            "name": platform.name,
            "data-dir": platform.home.data / ETCD,
            "listen-client-urls": clients,
            "advertise-client-urls": clients,
            "listen-peer-urls": peers,
            "initial-advertise-peer-urls": peers,
            "initial-cluster": f"{platform.name}={peers}",
            "client-cert-auth": "true",
            "peer-client-cert-auth": "true",
            **files,
            **{f"peer-{name}": file for name, file in files.items()},
            "quota-backend-bytes": _ETCD_QUOTA,
            "log-level": "warn",
        },
    )._replace(version=pinned("go.etcd.io/etcd/server/v3"))


def api_server(platform: Platform) -> Part:
    authority, home = platform.authority, platform.home
    certificate, key = authority.certificate(API_SERVER), authority.key(API_SERVER)
    return _part(
        platform,
        API_SERVER,
        Web(f"{platform.server}/readyz", client="admin"),
        {
            "bind-address": platform.address,
            "secure-port": platform.ports["api"],
            "advertise-address": platform.address,
            # No pod can reach a loopback address, so the Service `kubernetes` must not promise it.
            "endpoint-reconciler-type": "none" if platform.address == LOOPBACK else "lease",
            "tls-cert-file": certificate,
            "tls-private-key-file": key,
            "client-ca-file": authority.bundle,
            "anonymous-auth": "false",
            "authorization-mode": "Node,RBAC",
            "enable-admission-plugins": "NodeRestriction",
            "etcd-servers": f"https://{LOOPBACK}:{platform.ports['etcd']}",
            "etcd-cafile": authority.bundle,
            "etcd-certfile": certificate,
            "etcd-keyfile": key,
            "kubelet-certificate-authority": authority.bundle,
            "kubelet-client-certificate": certificate,
            "kubelet-client-key": key,
            # A node's name is in nobody's DNS.
            "kubelet-preferred-address-types": "InternalIP",
            "service-account-issuer": "https://kubernetes.default.svc.cluster.local",
            "service-account-key-file": authority.folder / "service-accounts.pub",
            "service-account-signing-key-file": authority.key("service-accounts"),
            "service-cluster-ip-range": platform.service_range,
            "allow-privileged": "true",
            "runtime-config": "certificates.k8s.io/v1beta1=true",
            "feature-gates": GATES,
            "audit-policy-file": home.configs / "audit.yaml",
            "audit-log-path": home.logs / "audit" / "audit.log",
            "audit-log-maxsize": 20,
            "audit-log-maxbackup": 2,
            "profiling": "false",
        },
    )._replace(ending=15.0)


def manager(platform: Platform) -> Part:
    authority = platform.authority
    kubeconfig = platform.config(MANAGER)
    return _part(
        platform,
        MANAGER,
        Web(f"https://{LOOPBACK}:{platform.ports['controller-manager']}/healthz"),
        {
            "kubeconfig": kubeconfig,
            "authentication-kubeconfig": kubeconfig,
            "authorization-kubeconfig": kubeconfig,
            "bind-address": LOOPBACK,
            "secure-port": platform.ports["controller-manager"],
            **_serving(platform, MANAGER),
            "leader-elect": "false",
            "use-service-account-credentials": "true",
            "service-account-private-key-file": authority.key("service-accounts"),
            "root-ca-file": authority.bundle,
            "cluster-signing-cert-file": authority.bundle,
            "cluster-signing-key-file": authority.key("ca"),
            "feature-gates": GATES,
            "kube-api-qps": _QUERIES[0],
            "kube-api-burst": _QUERIES[1],
            "profiling": "false",
        },
    )


def scheduler(platform: Platform) -> Part:
    kubeconfig = platform.config(SCHEDULER)
    return _part(
        platform,
        SCHEDULER,
        Web(f"https://{LOOPBACK}:{platform.ports['scheduler']}/healthz"),
        {
            "config": platform.home.configs / "scheduler.yaml",
            "authentication-kubeconfig": kubeconfig,
            "authorization-kubeconfig": kubeconfig,
            "bind-address": LOOPBACK,
            "secure-port": platform.ports["scheduler"],
            **_serving(platform, SCHEDULER),
            "feature-gates": GATES,
        },
    )


def _part(platform: Platform, name: str, ready: Web, flags: dict[str, object]) -> Part:
    words = (f"--{flag}={value}" for flag, value in flags.items())
    command = (str(platform.programs.kubernetes), name, *words)
    return Part(name, command, ready, version=pinned("k8s.io/kubernetes"))


def _serving(platform: Platform, name: str) -> dict[str, object]:
    return {
        "tls-cert-file": platform.authority.certificate(name),
        "tls-private-key-file": platform.authority.key(name),
    }


def _api_names() -> tuple[str, ...]:
    """As pods call it."""
    return ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")


def _audit() -> dict[str, object]:
    """Who did what to which object, and never its content."""
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [
            # Health and leases are asked and renewed all the time, by machines, and tell nobody anything.
            {"level": "None", "nonResourceURLs": ["/healthz*", "/livez*", "/readyz*", "/version"]},
            {"level": "None", "resources": [{"group": "coordination.k8s.io", "resources": ["leases"]}]},
            {"level": "Metadata"},
        ],
    }


def _scheduler(platform: Platform) -> dict[str, object]:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "enableProfiling": False,
        "clientConnection": {
            "kubeconfig": str(platform.config(SCHEDULER)),
            "qps": _QUERIES[0],
            "burst": _QUERIES[1],
        },
    }
