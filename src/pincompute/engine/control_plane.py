"""Control plane: etcd, API server, controller manager and scheduler, each with its own certificate."""

from __future__ import annotations

from datetime import datetime

import yaml

from pincompute.base.certificate_authority import Authority
from pincompute.base.secure_files import write_private_file
from pincompute.engine import secret_encryption
from pincompute.engine.build import pinned_version
from pincompute.engine.kubeconfigs import write_kubeconfig
from pincompute.engine.parts import HttpProbe, Part
from pincompute.engine.platform import Platform

ETCD = "etcd"
API_SERVER = "kube-apiserver"
MANAGER = "kube-controller-manager"
SCHEDULER = "kube-scheduler"

LOOPBACK = "127.0.0.1"
GATES = "PodCertificateRequest=true,ClusterTrustBundle=true,ClusterTrustBundleProjection=true"

# etcd's default quota of 2 GiB is too small for 120,000 pods.
_ETCD_QUOTA = 8 << 30
# Queries per second and burst. With the default of 20 per second a rollout of 200 pods takes ten seconds.
_CLIENT_QPS_AND_BURST = (1000, 2000)
_TLS = {"tls-min-version": "VersionTLS13"}
"""All cipher suites of TLS 1.3 are strong; those of 1.2 would have to be chosen."""


def issue_certificates(platform: Platform) -> None:
    issue = platform.authority.issue
    here = (LOOPBACK, "localhost")
    issue("admin", groups=("system:masters",))
    issue(API_SERVER, hosts=(*here, platform.address, platform.api_service_address, *_api_names()))
    issue(MANAGER, f"system:{MANAGER}", hosts=here)
    issue(SCHEDULER, f"system:{SCHEDULER}", hosts=here)
    platform.authority.issue_key("service-accounts")
    etcd_certificates = etcd_authority(platform)
    etcd_certificates.establish()
    etcd_certificates.issue(ETCD, hosts=here)
    etcd_certificates.issue(API_SERVER)


def certificates_expiry(platform: Platform) -> datetime | None:
    """Expiry of the first certificate that the next `pin up` renews; None if none is due.

    Certificates of other parts were issued together with these, or later.
    """
    own, of_etcd = platform.authority, etcd_authority(platform)
    found = [own.due_expiry(each) for each in ("admin", API_SERVER, MANAGER, SCHEDULER)]
    found += [of_etcd.due_expiry(each) for each in (ETCD, API_SERVER)]
    return min(filter(None, found), default=None)


def etcd_authority(platform: Platform) -> Authority:
    """CA of etcd, its peers, and the API server as its only client.

    etcd has no authorization here: every client that it accepts reads and writes everything. So no certificate of the
    platform's CA may be accepted by it.
    """
    return platform.authority.beneath(ETCD, f"{platform.name}-{ETCD}")


def write_files(platform: Platform) -> None:
    """Write kubeconfigs and configuration files of the parts."""
    write_kubeconfig(platform, "admin", platform.home.kubeconfig)
    for user in (MANAGER, SCHEDULER):
        write_kubeconfig(platform, user)
    for name, content in (("audit", _audit()), ("scheduler", _scheduler(platform))):
        write_private_file(platform.home.configs / f"{name}.yaml", yaml.safe_dump(content, sort_keys=False).encode())
    secret_encryption.write_configuration(platform)


def control_plane_stages(platform: Platform) -> list[list[Part]]:
    return [[etcd(platform), api_server(platform)], [manager(platform), scheduler(platform)]]


def etcd(platform: Platform) -> Part:
    clients = f"https://{LOOPBACK}:{platform.ports['etcd']}"
    peers = f"https://{LOOPBACK}:{platform.ports['etcd-peers']}"
    authority = etcd_authority(platform)
    files = {
        "trusted-ca-file": authority.bundle,
        "cert-file": authority.certificate(ETCD),
        "key-file": authority.key(ETCD),
    }
    return _part(
        platform,
        ETCD,
        HttpProbe(f"{clients}/health", client_certificate=API_SERVER, authority=ETCD),
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
            "tls-min-version": "TLS1.3",
            **files,
            **{f"peer-{name}": file for name, file in files.items()},
            "quota-backend-bytes": _ETCD_QUOTA,
            "log-level": "warn",
        },
    )._replace(version=pinned_version("go.etcd.io/etcd/server/v3"))


def api_server(platform: Platform) -> Part:
    authority, home, etcd_certificates = platform.authority, platform.home, etcd_authority(platform)
    certificate, key = authority.certificate(API_SERVER), authority.key(API_SERVER)
    return _part(
        platform,
        API_SERVER,
        HttpProbe(f"{platform.server}/readyz", client_certificate="admin"),
        {
            "bind-address": platform.address,
            "secure-port": platform.ports["api"],
            "advertise-address": platform.address,
            # Pods cannot reach a loopback address, so it must not become an endpoint of the Service `kubernetes`.
            "endpoint-reconciler-type": "none" if platform.address == LOOPBACK else "lease",
            "tls-cert-file": certificate,
            "tls-private-key-file": key,
            **_TLS,
            "client-ca-file": authority.bundle,
            "anonymous-auth": "false",
            "authorization-mode": "Node,RBAC",
            # External addresses of Services could be those of other projects.
            "enable-admission-plugins": "NodeRestriction,DenyServiceExternalIPs",
            "etcd-servers": f"https://{LOOPBACK}:{platform.ports['etcd']}",
            "etcd-cafile": etcd_certificates.bundle,
            "etcd-certfile": etcd_certificates.certificate(API_SERVER),
            "etcd-keyfile": etcd_certificates.key(API_SERVER),
            "encryption-provider-config": secret_encryption.configuration_file(platform),
            "kubelet-certificate-authority": authority.bundle,
            "kubelet-client-certificate": certificate,
            "kubelet-client-key": key,
            # Node names do not resolve in DNS.
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
            # 220 MB at most: the disk may be that of a developer.
            "audit-log-maxsize": 20,
            "audit-log-maxbackup": 10,
            "audit-log-maxage": 30,
            "profiling": "false",
        },
    )._replace(grace_period_s=15.0)


def manager(platform: Platform) -> Part:
    authority = platform.authority
    kubeconfig = platform.kubeconfig_of(MANAGER)
    return _part(
        platform,
        MANAGER,
        HttpProbe(f"https://{LOOPBACK}:{platform.ports['controller-manager']}/healthz"),
        {
            "kubeconfig": kubeconfig,
            "authentication-kubeconfig": kubeconfig,
            "authorization-kubeconfig": kubeconfig,
            "bind-address": LOOPBACK,
            "secure-port": platform.ports["controller-manager"],
            **_serving_certificate(platform, MANAGER),
            "leader-elect": "false",
            "use-service-account-credentials": "true",
            "service-account-private-key-file": authority.key("service-accounts"),
            "root-ca-file": authority.bundle,
            "cluster-signing-cert-file": authority.bundle,
            "cluster-signing-key-file": authority.key("ca"),
            "feature-gates": GATES,
            "kube-api-qps": _CLIENT_QPS_AND_BURST[0],
            "kube-api-burst": _CLIENT_QPS_AND_BURST[1],
            "profiling": "false",
        },
    )


def scheduler(platform: Platform) -> Part:
    kubeconfig = platform.kubeconfig_of(SCHEDULER)
    return _part(
        platform,
        SCHEDULER,
        HttpProbe(f"https://{LOOPBACK}:{platform.ports['scheduler']}/healthz"),
        {
            "config": platform.home.configs / "scheduler.yaml",
            "authentication-kubeconfig": kubeconfig,
            "authorization-kubeconfig": kubeconfig,
            "bind-address": LOOPBACK,
            "secure-port": platform.ports["scheduler"],
            **_serving_certificate(platform, SCHEDULER),
            "feature-gates": GATES,
        },
    )


def _part(platform: Platform, name: str, probe: HttpProbe, flags: dict[str, object]) -> Part:
    words = (f"--{flag}={value}" for flag, value in flags.items())
    command = (str(platform.programs.kubernetes), name, *words)
    return Part(name, command, probe, version=pinned_version("k8s.io/kubernetes"))


def _serving_certificate(platform: Platform, name: str) -> dict[str, object]:
    return {
        "tls-cert-file": platform.authority.certificate(name),
        "tls-private-key-file": platform.authority.key(name),
        **_TLS,
    }


def _api_names() -> tuple[str, ...]:
    """DNS names of the Service `kubernetes`."""
    return ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")


def _audit() -> dict[str, object]:
    """Audit policy: metadata of all requests, never the content of objects."""
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [
            # Health checks and lease renewals are frequent and carry no information.
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
            "kubeconfig": str(platform.kubeconfig_of(SCHEDULER)),
            "qps": _CLIENT_QPS_AND_BURST[0],
            "burst": _CLIENT_QPS_AND_BURST[1],
        },
    }
