"""Every name written into a cluster: labels, annotations, field managers, taints and namespaces.

No other module spells them.
"""

from __future__ import annotations

from typing import Final

GROUP: Final = "pinterest.com"
VERSION: Final = "v1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
CATEGORY: Final = "pinterest"

NAME_PREFIX: Final = "pincompute-"
"""Prefix of the names of our own components."""

# Field managers, which are also the names of our components.
OPERATOR: Final = "pincompute-operator"
DESK: Final = "pincompute-desk"
INSIGHT: Final = "pincompute-insight"
METRICS: Final = "pincompute-metrics"
ENGINE: Final = "pincompute-engine"
LOG_STORE: Final = "pincompute-log-store"
SECRET_STORE: Final = f"{NAME_PREFIX}secret-store"
CONFIG_STORE: Final = "pincompute-config-store"
METRICS_READER: Final = "pincompute-metrics-reader"
LOG_STORE_PORT: Final = 8081
"""Port in the store's own pod, if the store runs in the cluster and the API server forwards to it."""
LOG_SHIPPER: Final = "pincompute-log-shipper"
REGISTRAR: Final = "pincompute-registrar"
CLI_MANAGER: Final = "pincompute-pin"
STORAGE_PROVISIONER: Final = f"{GROUP}/storage"
"""Provisioner of volumes, named in storage classes."""
SIGNER: Final = "pincompute-signer"
INSTALLER: Final = "pincompute-install"
NODE_STATS_ACCOUNT: Final = f"{NAME_PREFIX}node-stats"
"""Service account with which a desk in a pod asks kubelets for resource use."""

# Signer of pod certificates; also the prefix of the names of its trust bundles.
IDENTITY_SIGNER: Final = f"{GROUP}/identity"

# Labels on every object of a workload, for ownership and quota.
PROJECT_LABEL: Final = f"{GROUP}/project"
WORKLOAD_LABEL: Final = f"{GROUP}/workload"
KIND_LABEL: Final = f"{GROUP}/kind"
TIER_LABEL: Final = f"{GROUP}/tier"

GPU_TYPE_LABEL: Final = f"{GROUP}/gpu-type"
"""On a node, set by the infrastructure team: the type of its GPUs, such as a100."""

REVIEW_LABEL: Final = f"{GROUP}/review"
"""On a project's namespace: landed or open."""

HOSTS_ANNOTATION: Final = f"{GROUP}/hosts"
"""On a namespace: the custom hosts that its project was given, separated by spaces."""
TOLERATIONS_ANNOTATION: Final = f"{GROUP}/tolerations"
RUNTIME_CLASSES_ANNOTATION: Final = f"{GROUP}/runtime-classes"
"""On a project's namespace: taint keys that its pods may tolerate, and runtime classes that they may use."""

# Labels of pods.
TEMPLATE_HASH_LABEL: Final = f"{GROUP}/template"
"""Hash of a pod's template. Identifies pods of the newest revision."""
IN_PLACE_HASH_LABEL: Final = f"{GROUP}/shape"
"""Hash of a pod's template without the images of its sidecars. Pods with the same hash differ in sidecar images only,
so that an update can be done in place.
"""
ATTEMPT_LABEL: Final = f"{GROUP}/attempt"
"""Attempt of a batch that a pod belongs to: 2 of resize@1.2."""

SERVERSET_LABEL: Final = f"{GROUP}/serverset"
"""`true` if the registrar registers the pod in the serverset of its workload."""
READERS_ANNOTATION: Final = f"{GROUP}/serverset-readers"
"""On a Service with a serverset: workloads of other projects that may read it, separated by spaces."""
ENDPOINTS_ANNOTATION: Final = f"{GROUP}/endpoints"
"""On a pod: the serversets that it reads, separated by spaces."""

CALLERS_LABEL: Final = f"{GROUP}/callers"
"""`listed` on pods of a workload with `callers`. The policies that admit a whole project leave these pods out."""
CALLERS_ANNOTATION: Final = f"{GROUP}/callers"
"""On a pod: the workloads that may call it over mutual TLS, such as ads/feed shop/web."""
CALLS_ANNOTATION: Final = f"{GROUP}/calls"
"""On a pod: the workloads that it calls over mutual TLS, each with a port on loopback, such as shop/api=15101."""
APPLICATION_PORT_ANNOTATION: Final = f"{GROUP}/application-port"
"""On a pod with callers: the port to which their requests are forwarded."""

REGISTERED: Final = f"{GROUP}/Registered"
"""Condition of a pod, set by the registrar of its node: it is a member of its serverset."""

# Scheduling gates of pods.
GANG_GATE: Final = f"{GROUP}/gang"
"""Holds back scheduling until all pods of a training job exist."""

# Ownership annotations: values that a label cannot hold, or that as a label would replace the pods.
OWNER_ANNOTATION: Final = f"{GROUP}/owner"
COST_CENTRE_ANNOTATION: Final = f"{GROUP}/cost-centre"
DESCRIPTION_ANNOTATION: Final = "kubernetes.io/description"
CONTACT_ANNOTATION: Final = f"{GROUP}/contact"
REVISION_ANNOTATION: Final = f"{GROUP}/revision"
EXPIRES_ANNOTATION: Final = f"{GROUP}/expires"
IAM_ROLE_ANNOTATION: Final = f"{GROUP}/iam-role"
RUNTIME_ANNOTATION: Final = f"{GROUP}/runtime"
"""On a revision and on finished work: the runtime it was created with."""
SECRETS_ANNOTATION: Final = f"{GROUP}/secrets"
"""On a pod: the secrets that its part keeps as files, such as db-password ads/api-key@3."""
SECRETS_GROUP_ANNOTATION: Final = f"{GROUP}/secrets-group"
"""On a pod: the supplementary group that may read these files."""
PARTS_ANNOTATION: Final = f"{GROUP}/parts"
"""On a pod: the injected runtime parts, such as identity-1 logs-2."""
IN_PLACE_UPDATE_ANNOTATION: Final = f"{GROUP}/ran"
"""On a pod with a runtime updated in place: changed sidecars with restart count and image before the update, such as
logs=0@logs:1.0. While both are unchanged, the old container is still running.
"""
CONTENT_ANNOTATION: Final = f"{GROUP}/content"
"""On a revision, and on objects with its number: hash of its content."""
MUTABLE_FIELDS_ANNOTATION: Final = f"{GROUP}/mutable-fields"
"""On a revision: fields of its spec that may change while it is the present one, as JSON."""
IMAGES_ANNOTATION: Final = f"{GROUP}/images"
"""On a revision: the images that ran, with their digest at that time."""
CONFIGURATION_ANNOTATION: Final = f"{GROUP}/configuration"
"""On a revision: its ConfigMap."""
CONFIG_ANNOTATION: Final = f"{GROUP}/config"
"""On a pod: its configuration bundles, such as ads/flags@3=DIGEST."""
LIVE_CONFIG_ANNOTATION: Final = f"{GROUP}/live-config"
"""On a pod: the configuration bundles that it follows, such as ads/flags."""
REQUESTED_SIZE_ANNOTATION: Final = f"{GROUP}/size"
"""On a claim: the last requested size."""
CLAIMS_ANNOTATION: Final = f"{GROUP}/claims"
"""On a pod: the claims it was created with, such as data log."""

METRICS_ANNOTATION: Final = f"{GROUP}/metrics"
"""On a pod: port and path of its metrics, such as 9102/metrics. Read by the discovery of Prometheus."""
METRICS_PORT_NAME: Final = "metrics"
"""Name of the container port that the platform adds for them. The policy of a project admits scrapers by this name."""
STATSD_PORT_NAME: Final = "statsd-metrics"
"""Name of the port on which the part `metrics` serves what it received by StatsD."""
RESTARTS_ANNOTATION: Final = f"{GROUP}/restarts"
"""On a pod: the restart counter of the workload at its creation."""

TASKS_ANNOTATION: Final = f"{GROUP}/tasks"
"""On a Job: the tasks that it runs, such as 17,88,203."""
WORK_HASH_ANNOTATION: Final = f"{GROUP}/work"
"""On a Job: hash of the revision's work."""
MUTABLE_HASH_ANNOTATION: Final = f"{GROUP}/pace"
"""On a Job: hash of the fields that may change while it runs."""

# Annotations that the loop works by.
WANTED_HASH_ANNOTATION: Final = f"{GROUP}/wanted"
"""On a native object: hash of the last wanted content. If it is equal, nothing is written."""
IMMUTABLE_HASH_ANNOTATION: Final = f"{GROUP}/fixed"
"""On a native object: hash of the immutable fields. If it differs, the object must be replaced."""
RUN_NOW_ANNOTATION: Final = f"{GROUP}/run-now"
"""On a cron job: a number that triggers one run when it is increased. It does not create a revision."""
ADOPTION_ANNOTATION: Final = f"{GROUP}/adopts"
"""On a workload that adopts existing objects: name, uid and generation of each object, such as Deployment/web=UID@3.
"""
INJECTED_FAULT_ANNOTATION: Final = f"{GROUP}/broken"
"""On a workload with an injected fault: the fault, the revision before it, and the hash of the content that it
created."""
SUBMISSION_ANNOTATION: Final = f"{GROUP}/submission"
"""On a workload: id of the desk's submission record."""

# Priority classes, one a tier; and that of infrastructure daemons.
PRIORITY_CLASS_PREFIX: Final = "pincompute-"
INFRASTRUCTURE_PRIORITY_CLASS: Final = f"{PRIORITY_CLASS_PREFIX}infrastructure"

# Label and taint of simulated nodes.
SIMULATED_LABEL: Final = f"{GROUP}/simulated"

# The label of all that `pin install` made, with the version that it was.
INSTALLED_LABEL: Final = f"{GROUP}/installed"

ADDRESS_ANNOTATION: Final = f"{GROUP}/address"
"""On the installed desk: its external URL."""

# Namespaces.
INGRESS_LABEL: Final = f"{GROUP}/ingress"
"""Label of the ingress namespace: its pods may send external requests into every project."""
METRICS_NAMESPACE_LABEL: Final = f"{GROUP}/scrapes"
"""Label of the namespace of a Prometheus in the cluster: its pods may reach the metrics of every project."""
SYSTEM_NAMESPACE: Final = "pincompute-system"
NODES_NAMESPACE: Final = "pincompute-nodes"
"""Namespace of node agents that need host paths, if the platform runs in the cluster."""
CLUSTER_FACTS_CONFIGMAP: Final = "cluster"
"""ConfigMap in which a cluster describes itself."""
