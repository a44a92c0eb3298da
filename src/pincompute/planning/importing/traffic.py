"""How a Deployment is asked, by its Services and Ingresses: the ports of a service, and how it is found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from pincompute.api.serving import PORT_NAME
from pincompute.objects.content import Object, identity
from pincompute.planning.importing.found import Found, named

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class Traffic(NamedTuple):
    port: int = 0
    """0 where nothing says on which it listens."""
    ports: tuple[Object, ...] = ()
    """The others that its Service leads to."""
    load_balancer: Object = {}
    container: str = ""
    """Which one listens there; empty where none says so."""
    service: Object | None = None
    """The one that becomes the workload's."""
    ingress: Object | None = None


def of(found: Found, name: str, port: int) -> Traffic:
    """The Service that bears the workload's name becomes its own; others stay beside it, with all who lead to them."""
    own = named(found.services, name)
    containers: list[Object] = found.template["spec"]["containers"]
    if own is None:
        service = next(iter(found.services), None)
        port = port or (_target(_main(service, ()), containers) if service else 0) or _first(containers)
        return Traffic(port, (), {"internal": True}, _listening(containers, port))
    main = _main(own, found.ingresses)
    number = port or _target(main, containers)
    ingress = named(found.ingresses, name)
    entrance = _entrance(ingress, own, main) if ingress else None
    return Traffic(
        number,
        tuple(_others(own, main, containers)),
        {**_called(main), **(entrance or {"internal": True})},
        _listening(containers, number),
        own,
        ingress if entrance else None,
    )


def of_service(service: Object, template: Object) -> Object:
    """What a Service comes to: whom it selects aside, with the numbers that its ports lead to."""
    spec = service["spec"]
    rest = {field: each for field, each in spec.items() if field not in _APART and each != _GRANTED.get(field)}
    headless = {"clusterIP": "None"} if spec.get("clusterIP") == "None" else {}
    containers = template["spec"]["containers"]
    ports = [{**_port(each), "targetPort": _target(each, containers)} for each in spec.get("ports") or ()]
    return {**rest, **headless, "ports": ports}


_APART = {"selector", "clusterIP", "clusterIPs", "ipFamilies", "ports"}
_GRANTED: Object = {
    "type": "ClusterIP",
    "sessionAffinity": "None",
    "internalTrafficPolicy": "Cluster",
    "ipFamilyPolicy": "SingleStack",
}


def _port(port: Object) -> Object:
    return {**{field: each for field, each in port.items() if each}, "protocol": port.get("protocol", "TCP")}


def _main(service: Object | None, ingresses: Sequence[Object]) -> Object:
    """The one that the world asks, or that is called as ours is, or the first."""
    ports: list[Object] = (service or {}).get("spec", {}).get("ports") or []
    asked = [each for one in ingresses for each in _backends(one) if service and _leads_to(each, service)]
    for each in ports:
        if any(_is_port(one, each) for one in asked):
            return each
    tcp = [each for each in ports if each.get("protocol", "TCP") == "TCP"]
    return next((each for each in tcp if each.get("name") == PORT_NAME), tcp[0] if tcp else {})


def _target(port: Object, containers: list[Object]) -> int:
    """The number that a port of a Service leads to, by the first container that has one of that name."""
    target = port.get("targetPort") or port.get("port", 0)
    if isinstance(target, int):
        return target
    ports = (each for container in containers for each in container.get("ports") or ())
    return next((int(each["containerPort"]) for each in ports if each.get("name") == target), 0)


def _first(containers: list[Object]) -> int:
    ports = (each for container in containers for each in container.get("ports") or ())
    return next((int(each["containerPort"]) for each in ports if each.get("protocol", "TCP") == "TCP"), 0)


def _listening(containers: list[Object], port: int) -> str:
    for each in containers:
        if any(one.get("containerPort") == port for one in each.get("ports") or ()):
            return str(each["name"])
    return ""


def _called(main: Object) -> Object:
    said: Object = {"port": main["port"]} if main.get("port", 80) != 80 else {}
    return {**said, **({"portName": main.get("name", "")} if main.get("name", "") != PORT_NAME else {})}


def _others(service: Object, main: Object, containers: list[Object]) -> Iterator[Object]:
    """Those that ours can say: reached as they are, by a name. The comparison tells of the rest."""
    for each in service["spec"]["ports"]:
        if each is main or each["port"] != _target(each, containers) or not each.get("name"):
            continue
        protocol = {"protocol": each["protocol"]} if each.get("protocol", "TCP") != "TCP" else {}
        yield {"name": each["name"], "port": each["port"], **protocol}


def _entrance(ingress: Object, service: Object, main: Object) -> Object | None:
    """One host and one path, and nothing that ours could not say."""
    spec, metadata = ingress["spec"], ingress["metadata"]
    rules = spec.get("rules") or []
    paths = (rules[0].get("http") or {}).get("paths", []) if len(rules) == 1 else []
    tls = spec.get("tls") or []
    if len(paths) != 1 or spec.keys() & {"defaultBackend", "ingressClassName"} or len(tls) > 1:
        return None
    host, (path,) = rules[0].get("host", ""), paths
    # Whoever serves it may read its annotations; ours has none that anybody knows.
    plain = not metadata.get("annotations", {}).keys() - {_LAST_APPLIED}
    backend = _leads_to(path["backend"], service) and _is_port(path["backend"], main)
    whole = path.get("pathType") == "Prefix" and all(each.get("hosts") == [host] for each in tls)
    if not (host and plain and backend and whole) or "*" in host or any(not each.get("secretName") for each in tls):
        return None
    at = {"path": path["path"]} if path.get("path", "/") != "/" else {}
    return {"host": host, **at, **({"tls": tls[0]["secretName"]} if tls else {})}


def _backends(ingress: Object) -> Iterator[Object]:
    for rule in ingress["spec"].get("rules") or ():
        for each in (rule.get("http") or {}).get("paths", ()):
            yield each["backend"]


def _leads_to(backend: Object, service: Object) -> bool:
    return bool(backend.get("service", {}).get("name") == service["metadata"]["name"])


def _is_port(backend: Object, port: Object) -> bool:
    said: Any = backend.get("service", {}).get("port", {})
    by_name = bool(said.get("name")) and said["name"] == port.get("name")
    return by_name or (bool(said.get("number")) and said["number"] == port.get("port"))


def beside(found: Found, traffic: Traffic) -> Iterator[str]:
    """Services and Ingresses that stay as they are, and go on leading to its copies."""
    taken = [each for each in (traffic.service, traffic.ingress) if each]
    return (identity(each) for each in (*found.services, *found.ingresses) if each not in taken)
