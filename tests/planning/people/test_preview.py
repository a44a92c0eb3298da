"""A plan as a person is told it: what would be made and changed, in which fields, and how much stays as it is."""

from __future__ import annotations

import msgspec

from pincompute.api.preview import FieldChange, Preview, Verb
from pincompute.api.service import PinterestService, ServiceSpec
from pincompute.api.wire import Metadata
from pincompute.objects.content import identity
from pincompute.planning.people.preview import foresee
from worlds import UID, after, alone, plan

WEB = PinterestService(
    metadata=Metadata(name="web", namespace="me", uid=UID, generation=1), spec=ServiceSpec(image="web:1", port=80)
)


def changed(spec: ServiceSpec) -> Preview:
    """From what was made of the first revision to this one."""
    planned = plan(alone(WEB))
    made = after(alone(WEB), planned)
    generation = msgspec.structs.replace(WEB.metadata, generation=2)
    owner = msgspec.structs.replace(WEB, metadata=generation, spec=spec)
    (told,) = foresee(made._replace(owner=owner), {identity(each): each for each in planned.wanted}).told
    return told


def test_what_stays_as_it_is_is_only_counted() -> None:
    told = changed(ServiceSpec(image="web:1", port=80, replicas=3))
    assert [(each.verb, each.native) for each in told.changes] == [
        (Verb.CHANGE, "Deployment/web"),
        (Verb.MAKE, "ConfigMap/web-2"),
    ]
    assert told.changes[0].fields == [FieldChange(path="spec.replicas", before="1", after="3")]
    assert (told.unchanged, told.restarts) == (4, False)


def test_another_image_makes_the_copies_anew() -> None:
    told = changed(ServiceSpec(image="web:2", port=80))
    image = FieldChange(path="spec.template.spec.containers.web.image", before="web:1", after="web:2")
    assert told.changes[0].fields == [image]
    assert told.restarts
