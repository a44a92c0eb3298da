"""Import of a DaemonSet as a daemon."""

from __future__ import annotations

from pincompute.api.daemon import PinterestDaemon
from pincompute.base.problem import refuse_all
from pincompute.objects.content import Object
from pincompute.planning.migration.effective_template import ConfigMapsByName
from pincompute.planning.migration.related_objects import RelatedObjects
from pincompute.planning.migration.short_form import PodForm, short_form_spec
from pincompute.planning.migration.traffic import Traffic
from pincompute.planning.migration.workload_import import WorkloadImport, build_import, membership_problems

_EVERY_TAINT = [{"operator": "Exists"}]
_KUBERNETES_UNAVAILABLE = 1
_MAX_NODE_LABELS = 16


def import_daemon_set(found: RelatedObjects, name: str = "") -> WorkloadImport:
    """Refused if no file could represent the DaemonSet.

    Its ports stay in the template: `port` would add a readiness check and a variable.
    """
    refuse_all(membership_problems(found))
    name = name or found.name
    files: ConfigMapsByName = {each["metadata"]["name"]: each for each in found.config_maps}
    spec = short_form_spec(found.template, name, Traffic(), files, PodForm())
    pod = spec["template"].get("spec", {})
    # The tier of a daemon is fixed.
    spec.pop("tier", None)
    if 0 < len(pod.get("nodeSelector", {})) <= _MAX_NODE_LABELS:
        spec["nodes"] = pod.pop("nodeSelector")
    if pod.get("tolerations") == _EVERY_TAINT:
        spec["everyNode"] = True
        del pod["tolerations"]
    rolling = (found.native["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
    unavailable = rolling.get("maxUnavailable", _KUBERNETES_UNAVAILABLE)
    if unavailable != _KUBERNETES_UNAVAILABLE and str(unavailable).rstrip("%").strip("0"):
        spec["rollout"] = {"unavailable": unavailable}
    return build_import(PinterestDaemon, found, name, spec, _daemon_set_view)


def _daemon_set_view(daemon_set: Object) -> Object:
    spec = daemon_set["spec"]
    return {
        "rollout": {"updateStrategy": (spec.get("updateStrategy") or {}).get("type") or "RollingUpdate"},
        "minReadySeconds": spec.get("minReadySeconds", 0),
    }
