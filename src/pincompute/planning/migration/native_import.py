"""Imports an object of any kind with pods by the module of its kind."""

from __future__ import annotations

from collections.abc import Mapping

from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import CANNOT_IMPORT
from pincompute.planning.migration.cron_job_import import import_cron_job
from pincompute.planning.migration.daemon_set_import import import_daemon_set
from pincompute.planning.migration.deployment_import import import_deployment
from pincompute.planning.migration.job_import import import_job
from pincompute.planning.migration.related_objects import RelatedObjects
from pincompute.planning.migration.stateful_set_import import import_stateful_set
from pincompute.planning.migration.training_job_import import import_training_job
from pincompute.planning.migration.workload_import import WorkloadImport

API_VERSIONS: Mapping[str, str] = {
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "CronJob": "batch/v1",
    "Job": "batch/v1",
    "PyTorchJob": "kubeflow.org/v1",
    "TFJob": "kubeflow.org/v1",
}
"""Kinds that can be imported, with the version whose fields the imports read."""
ADOPTABLE_KINDS = frozenset({"Deployment", "StatefulSet", "CronJob"})
"""Kinds with objects that become a workload while their pods keep running."""


def import_native(found: RelatedObjects, name: str = "", port: int = 0) -> WorkloadImport:
    """Refused if no file could represent the object."""
    match found.native["kind"]:
        case "Deployment":
            return import_deployment(found, name, port)
        case "StatefulSet":
            return import_stateful_set(found, name, port)
        case "DaemonSet":
            return import_daemon_set(found, name)
        case "CronJob":
            return import_cron_job(found, name)
        case "Job":
            return import_job(found, name)
        case "PyTorchJob" | "TFJob":
            return import_training_job(found, name)
        case kind:
            kinds = ", ".join(API_VERSIONS)
            raise Refused(Problem(CANNOT_IMPORT, f"a {kind} cannot be imported", note=f"kinds: {kinds}"))
