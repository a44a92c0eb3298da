"""Reasons of clusters: installation, credentials, the Kubernetes API and the operator."""

from __future__ import annotations

from pincompute.base.reasons.reason import infrastructure_error, user_error

INSTALLER_RIGHTS_MISSING = infrastructure_error(
    "InstallerRightsMissing",
    403,
    "The caller lacks the cluster rights to install or remove the platform.",
    "Ask a cluster administrator for them; `pin install --dry-run` prints the objects that would be applied.",
)
KUBERNETES_TOO_OLD = infrastructure_error(
    "KubernetesTooOld",
    501,
    "The cluster's Kubernetes version is too old.",
    "Upgrade the cluster to the version that the message names.",
)
POD_CERTIFICATES_MISSING = infrastructure_error(
    "PodCertificatesMissing",
    501,
    "The cluster does not serve pod certificates, which the parts of a runtime require.",
    "Serve certificates.k8s.io/v1beta1 with the feature gates in docs/installing.md, or install without --runtime.",
)
NEWER_INSTALLED = user_error(
    "NewerInstalled",
    409,
    "The platform on the cluster is newer than this `pin`.",
    "Install the version of `pin` that the message names.",
)
NOT_INSTALLED = user_error(
    "NotInstalled",
    404,
    "The platform is not installed on the cluster.",
    "`kubectl config get-contexts` lists the clusters.",
)
DELETION_STUCK = infrastructure_error(
    "DeletionStuck",
    504,
    "A deleted object still exists: a finalizer holds it.",
    "`kubectl get NAME -o yaml` shows its finalizers; run the same command again to resume.",
)
KUBECONFIG_INVALID = user_error(
    "KubeconfigInvalid",
    400,
    "A kubeconfig cannot be read, or refers to an entry that does not exist.",
    "Compare it with `kubectl config view`.",
)
CREDENTIALS_MISSING = user_error(
    "CredentialsMissing",
    401,
    "The credential plugin or file of a kubeconfig yields no credentials.",
    "Run the plugin by hand and sign in again.",
)
CLUSTER_UNREACHABLE = infrastructure_error(
    "ClusterUnreachable", 503, "The Kubernetes API did not respond.", "`pin status` shows whether it runs."
)
CLUSTER_REFUSED = infrastructure_error(
    "ClusterRefused",
    502,
    "The Kubernetes API rejected a request.",
    "Correct in the file what the message names; if the cause is not in the file, tell the infrastructure team.",
)
NOT_OWNED = user_error(
    "NotOwned",
    409,
    "An object of that name exists and is not owned by the workload.",
    "Rename the workload, or delete the object.",
)
RIGHTS_MISSING = infrastructure_error(
    "RightsMissing",
    403,
    "The operator lacks the right to watch a kind of object.",
    "Restore its RBAC rules, for example with `pin up`; it resumes by itself.",
)
SPEC_UNDECODABLE = user_error(
    "SpecUndecodable",
    422,
    "A stored resource does not match the current schema and cannot be decoded.",
    "Submit its file again; what runs is left unchanged until then.",
)
STORE_FULL = infrastructure_error(
    "StoreFull",
    507,
    "The cluster's etcd is full, so that nothing can be written.",
    "Compact and defragment etcd and disarm its alarm; reconciliation resumes by itself.",
)
NOT_LEADER = infrastructure_error(
    "NotLeader",
    409,
    "This operator does not hold the lease and therefore does not write.",
    "No action needed; `kubectl get lease --namespace pincompute-system` names the leader.",
)
KIND_NOT_SERVED = infrastructure_error(
    "KindNotServed",
    501,
    "The cluster does not serve the kind, or no controller of this platform reconciles it.",
    "`pin plan FILE` shows what it would become. Install what serves the kind; it is picked up at once.",
)
OPERATOR_NOT_RESPONDING = infrastructure_error(
    "OperatorNotResponding",
    503,
    "The operator has not observed the latest change of a workload.",
    "`pin status` shows whether it runs; running workloads are not affected.",
)
