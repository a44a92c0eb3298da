"""Every name that we write into a cluster: labels, annotations, managers, taints. Nothing else spells them."""

from __future__ import annotations

from typing import Final

GROUP: Final = "pinterest.com"
VERSION: Final = "v1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
CATEGORY: Final = "pinterest"

PREFIX: Final = "pincompute-"
"""Of the names of our own parts, in a cluster and outside."""

# Who writes which fields.
OPERATOR: Final = "pincompute-operator"
DESK: Final = "pincompute-desk"
ENGINE: Final = "pincompute-engine"
LOG_STORE: Final = "pincompute-log-store"
LOG_STORE_PORT: Final = 8081
"""Of its own pod, where it runs in the cluster: for those whom the API server forwards."""
LOG_SHIPPER: Final = "pincompute-log-shipper"
HAND: Final = "pincompute-pin"
STORAGE: Final = f"{GROUP}/storage"
"""Who provides volumes, as storage classes call it too."""
SIGNER: Final = "pincompute-signer"
INSTALLER: Final = "pincompute-install"

# Who vouches for pods; also the beginning of the names of what it is trusted by.
IDENTITY: Final = f"{GROUP}/identity"

# Labels that track whose an object is and what it may use, on everything that a workload becomes.
PROJECT: Final = f"{GROUP}/project"
WORKLOAD: Final = f"{GROUP}/workload"
KIND: Final = f"{GROUP}/kind"
TIER: Final = f"{GROUP}/tier"

REVIEW: Final = f"{GROUP}/review"
"""On a project's namespace: landed or open."""

# Labels of pods.
TEMPLATE: Final = f"{GROUP}/template"
"""The digest of a pod's template: which pods are of the newest making."""
SHAPE: Final = f"{GROUP}/shape"
"""The digest of a pod's template without the images of its sidecars: pods that share it differ in nothing else, so that
one can become the other where it is."""
ATTEMPT: Final = f"{GROUP}/attempt"
"""Which attempt at a batch a pod belongs to: 2 of resize@1.2."""

# Scheduling gates of pods.
GANG: Final = f"{GROUP}/gang"
"""No node is sought for it before all that train together are there."""

# Annotations that track the same, where a label could not hold it or would make pods anew.
OWNER: Final = f"{GROUP}/owner"
COST_CENTRE: Final = f"{GROUP}/cost-centre"
CONTACT: Final = f"{GROUP}/contact"
REVISION: Final = f"{GROUP}/revision"
EXPIRES: Final = f"{GROUP}/expires"
IAM_ROLE: Final = f"{GROUP}/iam-role"
RUNTIME: Final = f"{GROUP}/runtime"
"""On a revision, and on work that ends: the runtime it was made with."""
PARTS: Final = f"{GROUP}/parts"
"""On a pod: the parts that were injected, such as identity-1 logs-2."""
RAN: Final = f"{GROUP}/ran"
"""On a pod that got a runtime where it is: the sidecars that changed, how often they had been started again, and what
they ran, such as logs=0@logs:1.0. Until one of both is other, the old one still runs."""
IMAGES: Final = f"{GROUP}/images"
"""On a revision: each image that ran, with the digest that its name then stood for."""
CONFIGURATION: Final = f"{GROUP}/configuration"
"""On a revision: the ConfigMap that it was configured by."""
SIZE: Final = f"{GROUP}/size"
"""On a claim: how much was last asked for."""
CLAIMS: Final = f"{GROUP}/claims"
"""On a pod: the claims that it was made with, such as data log."""

RESTARTS: Final = f"{GROUP}/restarts"
"""On a pod: how often copies had been asked to be made anew."""

TASKS: Final = f"{GROUP}/tasks"
"""On a Job: the tasks that it runs, such as 17,88,203."""
WORK: Final = f"{GROUP}/work"
"""On a Job: the digest of what its revision runs."""
PACE: Final = f"{GROUP}/pace"
"""On a Job: the digest of what may change while it runs."""

# Annotations that the loop works by.
WANTED: Final = f"{GROUP}/wanted"
"""On a native: the digest of what was last wanted; equal means leave alone."""
FIXED: Final = f"{GROUP}/fixed"
"""On a native: the digest of what Kubernetes never changes in it; another means that it must be replaced."""
RUN_NOW: Final = f"{GROUP}/run-now"
"""On a periodic job: a number higher than before, and it runs once now. It changes nothing of how it runs."""
ADOPTS: Final = f"{GROUP}/adopts"
"""On a workload that takes over what was there before it: each native's name, uid and generation, such as
Deployment/web=UID@3."""
BROKEN: Final = f"{GROUP}/broken"
"""On a workload that was broken on purpose: the fault, the revision before it, and the digest of what it made."""
SUBMISSION: Final = f"{GROUP}/submission"
"""On a workload: the desk's record of how it came here."""

# Priority classes, one a tier; and that of infrastructure daemons.
PRIORITY: Final = "pincompute-"
INFRASTRUCTURE: Final = f"{PRIORITY}infrastructure"

# Label and taint of simulated nodes.
SIMULATED: Final = f"{GROUP}/simulated"

# The label of all that `pin install` made, with the version that it was.
INSTALLED: Final = f"{GROUP}/installed"

ADDRESS: Final = f"{GROUP}/address"
"""On the desk of an install: where people find it."""

# Namespaces.
INGRESS: Final = f"{GROUP}/ingress"
"""Label of a namespace whose pods bring the world's requests into every project."""
SYSTEM: Final = "pincompute-system"
NODES: Final = "pincompute-nodes"
"""Of what must see the files of a node, where the platform runs in the cluster."""
CLUSTER_FACTS: Final = "cluster"
"""The ConfigMap in which a cluster says what it is."""
