"""Kubernetes resources: group, version, plural and URL path of each kind."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote

from pincompute.objects.content import Object as Object


class Resource(NamedTuple):
    group: str
    """Empty for the core group."""
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """The `apiVersion` of objects: `apps/v1`, and `v1` for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """URL path of an object, of its subresource, or of the collection (of one namespace, if given)."""
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts += [self.plural, name, subresource]
        return "/" + "/".join(quote(part, safe="") for part in parts if part)

    def describe(self, namespace: str = "", name: str = "") -> str:
        """Name for messages: `deployments me/hello`."""
        qualified = f"{namespace}/{name}" if self.namespaced and namespace and name else name or namespace
        return f"{self.plural} {qualified}".rstrip()


def namespaced_name(item: Object) -> tuple[str, str]:
    """Namespace (empty for cluster-scoped objects) and name of an object."""
    metadata = item.get("metadata", {})
    return metadata.get("namespace", ""), metadata.get("name", "")


PODS = Resource("", "v1", "pods", "Pod")
SERVICES = Resource("", "v1", "services", "Service")
ENDPOINT_SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
SECRETS = Resource("", "v1", "secrets", "Secret")
SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
PERSISTENT_VOLUME_CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
PERSISTENT_VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
CORE_EVENTS = Resource("", "v1", "events", "Event")
EVENTS = Resource("events.k8s.io", "v1", "events", "Event")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
RESOURCE_QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")
LIMIT_RANGES = Resource("", "v1", "limitranges", "LimitRange")
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)

DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet")
STATEFUL_SETS = Resource("apps", "v1", "statefulsets", "StatefulSet")
DAEMON_SETS = Resource("apps", "v1", "daemonsets", "DaemonSet")
JOBS = Resource("batch", "v1", "jobs", "Job")
CRON_JOBS = Resource("batch", "v1", "cronjobs", "CronJob")
PYTORCH_JOBS = Resource("kubeflow.org", "v1", "pytorchjobs", "PyTorchJob")
TF_JOBS = Resource("kubeflow.org", "v1", "tfjobs", "TFJob")
INGRESSES = Resource("networking.k8s.io", "v1", "ingresses", "Ingress")
INGRESS_CLASSES = Resource("networking.k8s.io", "v1", "ingressclasses", "IngressClass", namespaced=False)
NETWORK_POLICIES = Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy")
POD_DISRUPTION_BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
HORIZONTAL_POD_AUTOSCALERS = Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")

ROLES = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role")
ROLE_BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")
CLUSTER_ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)
CLUSTER_ROLE_BINDINGS = Resource(
    "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False
)
PRIORITY_CLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)
STORAGE_CLASSES = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False)
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
VALIDATING_WEBHOOKS = Resource(
    "admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration",
    namespaced=False,
)  # fmt: skip
POD_CERTIFICATE_REQUESTS = Resource("certificates.k8s.io", "v1beta1", "podcertificaterequests", "PodCertificateRequest")
CERTIFICATE_SIGNING_REQUESTS = Resource(
    "certificates.k8s.io", "v1", "certificatesigningrequests", "CertificateSigningRequest", namespaced=False
)
CLUSTER_TRUST_BUNDLES = Resource(
    "certificates.k8s.io", "v1beta1", "clustertrustbundles", "ClusterTrustBundle", namespaced=False
)
VALIDATING_ADMISSION_POLICIES = Resource(
    "admissionregistration.k8s.io", "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", namespaced=False
)
VALIDATING_ADMISSION_POLICY_BINDINGS = Resource(
    "admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding",
    namespaced=False,
)  # fmt: skip
