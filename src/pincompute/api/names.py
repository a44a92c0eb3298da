"""Every name that we write into a cluster: labels, annotations, managers, taints. Nothing else spells them."""

from __future__ import annotations

from typing import Final

GROUP: Final = "pinterest.com"
VERSION: Final = "v1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
CATEGORY: Final = "pinterest"

# Who writes which fields.
OPERATOR: Final = "pincompute-operator"
DESK: Final = "pincompute-desk"
ENGINE: Final = "pincompute-engine"
HAND: Final = "pincompute-pin"

# Labels, on everything that a workload becomes.
PROJECT: Final = f"{GROUP}/project"
WORKLOAD: Final = f"{GROUP}/workload"
TEMPLATE: Final = f"{GROUP}/template"
"""The digest of a pod's template: which pods are of the newest making."""

# Annotations.
WANTED: Final = f"{GROUP}/wanted"
"""On a native: the digest of what was last wanted; equal means leave alone."""
SUBMISSION: Final = f"{GROUP}/submission"
"""On a workload: the desk's record of how it came here."""

# Label and taint of simulated nodes.
SIMULATED: Final = f"{GROUP}/simulated"

# Namespaces.
SYSTEM: Final = "pincompute-system"
CLUSTER_FACTS: Final = "cluster"
"""The ConfigMap in which a cluster says what it is."""
