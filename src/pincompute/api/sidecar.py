"""PinterestSidecar: a part of the runtime at one version: whom it serves, what it adds, and what they may set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from pincompute.api.names import GROUP
from pincompute.api.noun import Fault, Noun, Path, Rule, Spec, label_faults
from pincompute.api.parameter import Parameter
from pincompute.api.pod import Container, Volume, VolumeMount, stands_twice
from pincompute.api.shape import perhaps
from pincompute.api.status import Report
from pincompute.api.wire import Strict, amount
from pincompute.api.workload import NOT_THEIRS, OUR_VARIABLES, Tier
from pincompute.objects.content import Object
from pincompute.objects.image import parse

Served = Literal[
    "PinterestService",
    "PinterestStatefulSet",
    "PinterestJobSet",
    "PinterestCronJob",
    "PinterestTrainingJob",
    "PinterestDaemon",
]
USUALLY: tuple[Served, ...] = (
    "PinterestService",
    "PinterestStatefulSet",
    "PinterestJobSet",
    "PinterestCronJob",
    "PinterestTrainingJob",
)
"""Daemons are parts of the runtime themselves: one that is served is named on purpose."""


def _whole(shape: type) -> Meta:
    """Kubernetes' own: every field of it survives, also those that are not described here."""
    return Meta(extra={"shape": shape}, extra_json_schema={"$ref": shape.__name__})


class Serves(Strict, frozen=True, kw_only=True):
    """Whom it serves: every workload for which all of this is so."""

    kinds: Annotated[
        list[Served],
        Meta(description="Their kinds, such as [PinterestService]; all but PinterestDaemon by default.", max_length=6),
    ] = []
    tiers: Annotated[
        list[Tier], Meta(description="Their tiers, such as [reserved]; all by default.", max_length=3)
    ] = []
    selector: Annotated[
        dict[str, Annotated[str, Meta(max_length=63)]],
        Meta(description="Labels that they carry, such as mesh: new; none by default.", max_length=16),
    ] = {}


class SidecarSpec(Spec, frozen=True, kw_only=True):
    """The short form is one sidecar that is called as the part; the rest adds whatever else a pod can take."""

    image: Annotated[str, Meta(description="The image of its sidecar, such as logs:2.0.", max_length=512)] = ""
    cpu: Annotated[int | str, amount("Processor time that is kept for it, such as 50m; 10m by default.")] = ""
    memory: Annotated[int | str, amount("Memory that it has, and no more, such as 64Mi; 32Mi by default.")] = ""
    port: Annotated[
        int,
        Meta(
            description="The port it listens on, such as 4000, before which nothing else starts; none by default.",
            ge=0,
            le=65535,
        ),
    ] = 0
    serves: Annotated[Serves, Meta(description="Whom it serves; every workload by default.")] = Serves()
    needs: Annotated[
        list[Annotated[str, Meta(max_length=63)]],
        Meta(
            description="Parts that start before it, and whose variables and mounts its containers have too, such as"
            " [identity].",
            max_length=8,
        ),
    ] = []
    provides: Annotated[
        str,
        Meta(
            description="What parts that need it call it too, such as identity of one that has it in another way; "
            "its own name alone by default.",
            max_length=63,
        ),
    ] = ""
    parameters: Annotated[
        dict[str, Parameter],
        Meta(description="What a workload may set under sidecarConfig, such as level: {…}.", max_length=32),
    ] = {}
    environment: Annotated[
        dict[str, Annotated[str, Meta(max_length=32_768)]],
        Meta(
            description="Variables that are added to the workload's containers, such as LOG_SOCKET: /logs/socket.",
            max_length=64,
        ),
    ] = {}
    mounts: Annotated[
        list[Annotated[Object, _whole(VolumeMount)]],
        Meta(
            description="Where the workload's containers see its volumes, such as - {name: logs, mountPath: /logs}.",
            max_length=32,
        ),
    ] = []
    volumes: Annotated[
        list[Annotated[Object, _whole(Volume)]],
        Meta(description="Volumes of the pod, such as - {name: logs, emptyDir: {}}.", max_length=32),
    ] = []
    init_containers: Annotated[
        list[Annotated[Object, _whole(Container)]],
        Meta(
            description="Containers that run before all others, such as - {name: fetch, image: fetch:1}.", max_length=8
        ),
    ] = []
    sidecars: Annotated[
        list[Annotated[Object, _whole(Container)]],
        Meta(description="Containers that run beside, such as - {name: ship, image: ship:1}.", max_length=8),
    ] = []
    readiness_gates: Annotated[
        list[Annotated[str, Meta(max_length=316)]],
        Meta(
            description="Conditions that a pod waits for before it is ready, such as example.com/registered.",
            max_length=8,
        ),
    ] = []
    labels: Annotated[
        dict[str, Annotated[str, Meta(max_length=63)]],
        Meta(description="Labels of the pods, such as mesh: new.", max_length=16),
    ] = {}

    def faults(self, name: str) -> Iterator[Fault]:
        yield from super().faults(name)
        yield from self._short_form_faults()
        yield from self._container_faults(name.rpartition("-")[0])
        yield from self._volume_faults()
        yield from self._parameter_faults()
        for variable in self.environment:
            if not variable or "=" in variable or variable.startswith(OUR_VARIABLES):
                yield Fault(("environment", variable), f"no variable can be called '{variable}'", NOT_THEIRS)
        yield from label_faults(self.labels, ("labels",))
        yield from label_faults(self.serves.selector, ("serves", "selector"))
        for label in self.labels:
            if label.startswith(f"{GROUP}/"):
                yield Fault(("labels", label), f"labels of {GROUP} are set by the platform")

    def _short_form_faults(self) -> Iterator[Fault]:
        adds = (
            self.image,
            self.init_containers,
            self.sidecars,
            self.volumes,
            self.environment,
            self.labels,
            self.readiness_gates,
        )
        if not any(adds):
            yield Fault(("image",), "the part adds nothing", next="write image: NAME:TAG")
        if self.image:
            yield from _image_faults(self.image, ("image",))
            return
        for field, said in (("cpu", self.cpu), ("memory", self.memory), ("port", self.port)):
            if said:
                yield Fault((field,), f"{field} speaks of an image, and there is none", next="write image: NAME:TAG")

    def _container_faults(self, part: str) -> Iterator[Fault]:
        taken = {part} if self.image else set()
        for group, each, path in self.containers():
            name = each.get("name")
            if name in taken:
                yield Fault((*path, "name"), f"two containers are called '{name}'")
            taken.add(str(name))
            yield from _image_faults(str(each.get("image", "")), (*path, "image"))
            policy = each.get("restartPolicy")
            if group == "sidecars" and policy not in {None, "Always"}:
                yield Fault((*path, "restartPolicy"), "a sidecar is always restarted", next="leave it out")
            if group == "initContainers" and policy == "Always":
                yield Fault((*path, "restartPolicy"), "what runs beside is a sidecar", next="write it under sidecars")
            yield from stands_twice(each, "env", "name", path)
            yield from stands_twice(each, "volumeMounts", "mountPath", path)
            for place, variable in enumerate(_variables(each)):
                if variable.startswith(OUR_VARIABLES):
                    what = f"no variable can be called '{variable}'"
                    yield Fault((*path, "env", place, "name"), what, NOT_THEIRS)

    def _volume_faults(self) -> Iterator[Fault]:
        """A part mounts what is its own: it can rely on nobody else's."""
        names = [str(each.get("name")) for each in self.volumes]
        for index, name in enumerate(names):
            if name in names[:index]:
                yield Fault(("volumes", index, "name"), f"two volumes are called '{name}'")
        yield from stands_twice({"mounts": self.mounts}, "mounts", "mountPath", ())
        mounts: list[tuple[Object, Path]] = [(each, ("mounts", index)) for index, each in enumerate(self.mounts)]
        for _, container, path in self.containers():
            mounts += [
                (each, (*path, "volumeMounts", index)) for index, each in enumerate(_dicts(container, "volumeMounts"))
            ]
        for mount, path in mounts:
            name = str(mount.get("name"))
            if name not in names:
                yield Fault((*path, "name"), f"the part has no volume '{name}'", next=perhaps(name, names))

    def _parameter_faults(self) -> Iterator[Fault]:
        """Its variables are for its own containers, each of which may have named them already."""
        taken = {variable: "a container" for _, each, _ in self.containers() for variable in _variables(each)}
        for name, each in self.parameters.items():
            path = ("parameters", name)
            yield from each.faults(name, path)
            if each.variable in taken:
                yield Fault((*path, "variable"), f"{each.variable} is set by {taken[each.variable]} already")
            taken[each.variable] = f"the parameter '{name}'"

    def containers(self) -> Iterator[tuple[str, Object, Path]]:
        """Those of the long form, with where they stand."""
        for group, members in (("initContainers", self.init_containers), ("sidecars", self.sidecars)):
            for index, each in enumerate(members):
                yield group, each, (group, index)


def _image_faults(image: str, path: Path) -> Iterator[Fault]:
    if not image:
        yield Fault(path, "image is missing", next="write image: NAME:TAG")
        return
    try:
        parse(image)
    except ValueError as error:
        yield Fault(path, f"{image!r} cannot be an image: {error}")


def _variables(container: Object) -> list[str]:
    return [str(each.get("name")) for each in _dicts(container, "env")]


def _dicts(value: Object, field: str) -> list[dict[str, Any]]:
    found = value.get(field)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


class SidecarStatus(Report, frozen=True):
    """Which runtimes it is a part of."""

    runtimes: Annotated[
        list[Annotated[int, Meta(ge=1)]], Meta(description="The runtimes that it is a part of, such as [42, 43].")
    ] = []


class PinterestSidecar(Noun, frozen=True, kw_only=True, rename=None):
    """A part of the runtime at one version, which a pod has for itself."""

    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("psc",)
    COLUMNS: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("Image", "string", ".spec.image"),
        ("Runtimes", "string", ".status.runtimes"),
        ("Age", "date", ".metadata.creationTimestamp"),
    )
    CLUSTER_WIDE: ClassVar[bool] = True
    NAME_PATTERN: ClassVar[str] = "^[a-z]([-a-z0-9]*[a-z0-9])?-[1-9][0-9]*$"
    NAME_WORDS: ClassVar[str] = "lower-case letters, digits and dashes, and ends with its version, such as logs-2"
    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule("self.spec == oldSelf.spec", "a part never changes: make its next version, such as logs-3 after logs-2"),
    )

    spec: SidecarSpec
    status: SidecarStatus = SidecarStatus()
    kind: str = "PinterestSidecar"

    @property
    def part(self) -> str:
        """What it is called in every version: `logs` of `logs-2`."""
        return self.metadata.name.rpartition("-")[0]

    @property
    def provided(self) -> frozenset[str]:
        """By which names others can need it."""
        return frozenset({self.part, self.spec.provides or self.part})
