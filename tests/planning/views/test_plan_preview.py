"""Preview of a plan: created and updated objects with their fields, and the number of unchanged ones."""

from __future__ import annotations

import msgspec

from pincompute.api.preview import FieldChange, ObjectAction, Preview
from pincompute.api.service import PinterestService, ServiceSpec
from pincompute.api.structs import Metadata
from pincompute.objects.content import object_label
from pincompute.planning.views.plan_preview import preview_plan
from snapshot_strategies import UID, new_snapshot, plan_snapshot, snapshot_after

WEB = PinterestService(
    metadata=Metadata(name="web", namespace="me", uid=UID, generation=1), spec=ServiceSpec(image="web:1", port=80)
)


def preview_change(spec: ServiceSpec) -> Preview:
    """The preview of a change from the first revision to this spec."""
    planned = plan_snapshot(new_snapshot(WEB))
    made = snapshot_after(new_snapshot(WEB), planned)
    generation = msgspec.structs.replace(WEB.metadata, generation=2)
    owner = msgspec.structs.replace(WEB, metadata=generation, spec=spec)
    (preview,) = preview_plan(
        made._replace(owner=owner), {object_label(each): each for each in planned.wanted}
    ).previews
    return preview


def test_counts_unchanged_objects() -> None:
    preview = preview_change(ServiceSpec(image="web:1", port=80, replicas=3))
    assert [(each.action, each.native) for each in preview.changes] == [
        (ObjectAction.UPDATE, "Deployment/web"),
        # Of one replica it would protect none.
        (ObjectAction.CREATE, "PodDisruptionBudget/web"),
    ]
    assert preview.changes[0].fields == [FieldChange(path="spec.replicas", before="1", after="3")]
    assert (preview.unchanged, preview.restarts_replicas) == (4, False)


def test_image_change_restarts_replicas() -> None:
    preview = preview_change(ServiceSpec(image="web:2", port=80))
    image = FieldChange(path="spec.template.spec.containers.web.image", before="web:1", after="web:2")
    assert preview.changes[0].fields == [image]
    assert preview.restarts_replicas
