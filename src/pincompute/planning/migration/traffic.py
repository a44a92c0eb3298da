"""Traffic settings of an imported Deployment, derived from its Services and Ingresses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from pincompute.api.serving import HTTP_PORT_NAME
from pincompute.objects.content import Object, object_label
from pincompute.planning.migration.related_objects import RelatedObjects, find_by_name

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class Traffic(NamedTuple):
    """Ports and routing in the short form, and the objects from which they were read."""

    port: int = 0
    """Port of the program; 0 if no object names one."""
    ports: tuple[Object, ...] = ()
    """Further ports of the Service."""
    load_balancer: Object = {}
    container: str = ""
    """Container that declares the port; empty if none does."""
    service: Object | None = None
    """Service that the workload will adopt."""
    ingress: Object | None = None


def read_traffic(found: RelatedObjects, name: str, port: int) -> Traffic:
    """The traffic settings. Only a Service with the name of the workload is adopted; others keep selecting its pods."""
    own = find_by_name(found.services, name)
    containers: list[Object] = found.template["spec"]["containers"]
    if own is None:
        service = next(iter(found.services), None)
        of_service = _target_port(_main_port(service, ()), containers) if service else 0
        port = port or of_service or _first_container_port(containers)
        return Traffic(port, (), {"internal": True}, _listening_container(containers, port))
    main = _main_port(own, found.ingresses)
    number = port or _target_port(main, containers)
    ingress = find_by_name(found.ingresses, name)
    routing = _ingress_settings(ingress, own, main) if ingress else None
    return Traffic(
        number,
        tuple(_further_ports(own, main, containers)),
        {**_port_settings(main), **(routing or {"internal": True})},
        _listening_container(containers, number),
        own,
        ingress if routing else None,
    )


def effective_service(service: Object, template: Object) -> Object:
    """The Service without its selector and with target ports by number, for comparison with the generated one."""
    spec = service["spec"]
    rest = {
        name: value
        for name, value in spec.items()
        if name not in _COMPARED_SEPARATELY and value != _SERVICE_DEFAULTS.get(name)
    }
    headless = {"clusterIP": "None"} if spec.get("clusterIP") == "None" else {}
    containers = template["spec"]["containers"]
    ports = [{**_with_protocol(port), "targetPort": _target_port(port, containers)} for port in spec.get("ports") or ()]
    return {**rest, **headless, "ports": ports}


_COMPARED_SEPARATELY = {"selector", "clusterIP", "clusterIPs", "ipFamilies", "ports"}
_SERVICE_DEFAULTS: Object = {
    "type": "ClusterIP",
    "sessionAffinity": "None",
    "internalTrafficPolicy": "Cluster",
    "ipFamilyPolicy": "SingleStack",
}


def _with_protocol(port: Object) -> Object:
    return {**{name: value for name, value in port.items() if value}, "protocol": port.get("protocol", "TCP")}


def _main_port(service: Object | None, ingresses: Sequence[Object]) -> Object:
    """The port that an Ingress routes to, else the one with the usual name, else the first TCP port."""
    ports: list[Object] = (service or {}).get("spec", {}).get("ports") or []
    routed = [
        backend
        for ingress in ingresses
        for backend in _backends(ingress)
        if service and _routes_to_service(backend, service)
    ]
    for port in ports:
        if any(_routes_to_port(backend, port) for backend in routed):
            return port
    tcp = [port for port in ports if port.get("protocol", "TCP") == "TCP"]
    return next((port for port in tcp if port.get("name") == HTTP_PORT_NAME), tcp[0] if tcp else {})


def _target_port(port: Object, containers: list[Object]) -> int:
    """The number of a Service port's target; a name is that of the first container port with it."""
    target = port.get("targetPort") or port.get("port", 0)
    if isinstance(target, int):
        return target
    ports = _container_ports(containers)
    return next((int(each["containerPort"]) for each in ports if each.get("name") == target), 0)


def _first_container_port(containers: list[Object]) -> int:
    ports = _container_ports(containers)
    return next((int(each["containerPort"]) for each in ports if each.get("protocol", "TCP") == "TCP"), 0)


def _container_ports(containers: list[Object]) -> Iterator[Object]:
    return (port for container in containers for port in container.get("ports") or ())


def _listening_container(containers: list[Object], port: int) -> str:
    for container in containers:
        if any(each.get("containerPort") == port for each in container.get("ports") or ()):
            return str(container["name"])
    return ""


def _port_settings(main: Object) -> Object:
    """Number and name of the Service port, where they differ from the defaults."""
    number: Object = {"port": main["port"]} if main.get("port", 80) != 80 else {}
    name = main.get("name", "")
    return {**number, **({"portName": name} if name != HTTP_PORT_NAME else {})}


def _further_ports(service: Object, main: Object, containers: list[Object]) -> Iterator[Object]:
    """Further ports that the short form can represent: named, with equal port and target. The comparison with the
    generated Service reports the others."""
    for port in service["spec"]["ports"]:
        if port is main or port["port"] != _target_port(port, containers) or not port.get("name"):
            continue
        protocol = {"protocol": port["protocol"]} if port.get("protocol", "TCP") != "TCP" else {}
        yield {"name": port["name"], "port": port["port"], **protocol}


def _ingress_settings(ingress: Object, service: Object, main: Object) -> Object | None:
    """The settings of an Ingress with one host and one path; None if it has anything that they cannot represent."""
    spec, metadata = ingress["spec"], ingress["metadata"]
    rules = spec.get("rules") or []
    paths = (rules[0].get("http") or {}).get("paths", []) if len(rules) == 1 else []
    tls = spec.get("tls") or []
    if len(paths) != 1 or "defaultBackend" in spec or len(tls) > 1:
        return None
    host, (path,) = rules[0].get("host", ""), paths
    # Annotations are instructions to the ingress controller. Each has to be opened by the project first.
    has_no_annotations = not metadata.get("annotations", {}).keys() - {_LAST_APPLIED}
    is_main_backend = _routes_to_service(path["backend"], service) and _routes_to_port(path["backend"], main)
    is_prefix = path.get("pathType") == "Prefix"
    tls_matches = all(each.get("hosts") == [host] and each.get("secretName") for each in tls)
    if not (host and has_no_annotations and is_main_backend and is_prefix and tls_matches) or "*" in host:
        return None
    at_path = {"path": path["path"]} if path.get("path", "/") != "/" else {}
    in_class = {"class": spec["ingressClassName"]} if spec.get("ingressClassName") else {}
    return {"host": host, **in_class, **at_path, **({"tls": tls[0]["secretName"]} if tls else {})}


def _backends(ingress: Object) -> Iterator[Object]:
    for rule in ingress["spec"].get("rules") or ():
        for path in (rule.get("http") or {}).get("paths", ()):
            yield path["backend"]


def _routes_to_service(backend: Object, service: Object) -> bool:
    return bool(backend.get("service", {}).get("name") == service["metadata"]["name"])


def _routes_to_port(backend: Object, port: Object) -> bool:
    target: Any = backend.get("service", {}).get("port", {})
    by_name = bool(target.get("name")) and target["name"] == port.get("name")
    return by_name or (bool(target.get("number")) and target["number"] == port.get("port"))


def remaining_routes(found: RelatedObjects, traffic: Traffic) -> Iterator[str]:
    """Services and Ingresses that are not adopted, and keep routing to the workload's pods."""
    adopted = [each for each in (traffic.service, traffic.ingress) if each]
    return (object_label(each) for each in (*found.services, *found.ingresses) if each not in adopted)
