"""The level `restricted` of Pod Security, as the API server checks it: pods that it would forbid are refused at once.

Kubernetes accepts a Deployment with a forbidden template and rejects each of its pods afterwards. The checks and their
texts are those of the policy library of Kubernetes 1.36, in its order: first those of the level `baseline`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from pincompute.objects.content import Object

_ALLOWED_VOLUMES = frozenset(
    {
        "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected",
        "secret",
    }
)  # fmt: skip
_ALLOWED_PROFILES = frozenset({"RuntimeDefault", "Localhost"})
_ALLOWED_SELINUX_TYPES = frozenset(
    {"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"}
)  # fmt: skip
_ALLOWED_SYSCTLS = frozenset(
    {
        "kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range", "net.ipv4.ip_unprivileged_port_start", "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem",
    }
)  # fmt: skip

FieldSteps = tuple[str, ...]


class Violation(NamedTuple):
    """A rule that a pod breaks."""

    rule: str
    detail: str
    paths: tuple[FieldSteps, ...] = ()
    """Fields of the pod's spec that break it."""

    def __str__(self) -> str:
        return f"{self.rule} ({self.detail})"


class _Pod(NamedTuple):
    spec: Object

    @property
    def containers(self) -> list[tuple[FieldSteps, Object]]:
        """Containers with their paths, in the order in which Kubernetes visits them."""
        lists = ("initContainers", "containers", "ephemeralContainers")
        return [((field, str(each["name"])), each) for field in lists for each in self.spec.get(field) or ()]

    @property
    def context(self) -> Object:
        return self.spec.get("securityContext") or {}

    @property
    def has_user_namespace(self) -> bool:
        """True if root in the pod is not root on the node."""
        return self.spec.get("hostUsers") is False

    def breaking(self, field: FieldSteps, is_bad: Callable[[Any], bool]) -> _Setters:
        """The pod and the containers with a bad value in a field of their security context."""
        found = [(("securityContext", *field), _at(self.context, field))]
        found += [((*path, "securityContext", *field), _at(_context(each), field)) for path, each in self.containers]
        return _Setters(tuple((path, value) for path, value in found if value is not None and is_bad(value)))


class _Setters(NamedTuple):
    found: tuple[tuple[FieldSteps, Any], ...]

    @property
    def paths(self) -> tuple[FieldSteps, ...]:
        return tuple(path for path, _ in self.found)

    @property
    def text(self) -> str:
        names = [path[1] for path in self.paths if path[0] != "securityContext"]
        pod = ["pod"] if len(names) < len(self.found) else []
        return " and ".join([*pod, *([_containers_text(names)] if names else [])])

    @property
    def values(self) -> str:
        return _quoted(sorted({str(value) for _, value in self.found}))


def violations(spec: Object) -> list[Violation]:
    """All rules of the level `restricted` that a pod with this spec breaks, in the order of Kubernetes."""
    pod = _Pod(spec)
    return [violation for check in _CHECKS for violation in check(pod)]


def _app_armor(pod: _Pod) -> Iterator[Violation]:
    if (bad := pod.breaking(("appArmorProfile", "type"), lambda value: value not in _ALLOWED_PROFILES)).found:
        profiles = "profiles" if len(set(bad.values.split(", "))) > 1 else "profile"
        detail = f"{bad.text} must not set AppArmor profile type to {bad.values}"
        yield Violation(f"forbidden AppArmor {profiles}", detail, tuple(path[:-1] for path in bad.paths))


def _host_namespaces(pod: _Pod) -> Iterator[Violation]:
    if fields := [each for each in ("hostNetwork", "hostPID", "hostIPC") if pod.spec.get(each)]:
        detail = ", ".join(f"{each}=true" for each in fields)
        yield Violation("host namespaces", detail, tuple((each,) for each in fields))


def _host_ports(pod: _Pod) -> Iterator[Violation]:
    """In the network of the host each port is a port of the host."""
    field = "containerPort" if pod.spec.get("hostNetwork") else "hostPort"
    numbered = [(path, str(number), port) for path, each in pod.containers for number, port in _ports(each)]
    written = [(path[1], port.get("hostPort") or port.get(field)) for path, _, port in numbered]
    if used := [each for each in written if each[1]]:
        names, ports = list(dict.fromkeys(name for name, _ in used)), sorted({str(port) for _, port in used})
        detail = f"{_containers_text(names)} {_use(names)} {_plural('hostPort', ports)} {', '.join(ports)}"
        paths = ((*path, "ports", number, "hostPort") for path, number, port in numbered if port.get("hostPort"))
        yield Violation("hostPort", detail, tuple(paths))


def _ports(container: Object) -> Iterator[tuple[int, Object]]:
    return enumerate(container.get("ports") or ())


def _probe_hosts(pod: _Pod) -> Iterator[Violation]:
    found: dict[FieldSteps, str] = {}
    for path, container in pod.containers:
        lifecycle = container.get("lifecycle") or {}
        handlers = [((each,), container.get(each)) for each in ("livenessProbe", "readinessProbe", "startupProbe")]
        handlers += [(("lifecycle", each), lifecycle.get(each)) for each in ("postStart", "preStop")]
        for steps, handler in handlers:
            for action in ("httpGet", "tcpSocket"):
                if host := ((handler or {}).get(action) or {}).get("host"):
                    found[*path, *steps, action, "host"] = str(host)
    if found:
        names, hosts = sorted({path[1] for path in found}), sorted(set(found.values()))
        detail = f"{_containers_text(names)} {_use(names)} {_plural('probe or lifecycle host', hosts)} {_quoted(hosts)}"
        yield Violation("probe or lifecycle host", detail, tuple(found))


def _privileged(pod: _Pod) -> Iterator[Violation]:
    if bad := _of_containers(pod, ("privileged",), bool):
        detail = f"{_containers_text([path[1] for path in bad])} must not set securityContext.privileged=true"
        yield Violation("privileged", detail, tuple(bad))


def _selinux(pod: _Pod) -> Iterator[Violation]:
    def is_bad(options: Object) -> bool:
        type_ = options.get("type") or ""
        return bool(type_ not in _ALLOWED_SELINUX_TYPES or options.get("user") or options.get("role"))

    if (bad := pod.breaking(("seLinuxOptions",), is_bad)).found:
        options = [value for _, value in bad.found]
        types = sorted({str(each.get("type") or "") for each in options} - _ALLOWED_SELINUX_TYPES)
        data = [f"{_plural('type', types)} {_quoted(types)}"] if types else []
        data += [f"{each} may not be set" for each in ("user", "role") if any(one.get(each) for one in options)]
        detail = f"{bad.text} set forbidden securityContext.seLinuxOptions: {'; '.join(data)}"
        yield Violation("seLinuxOptions", detail, bad.paths)


def _sysctls(pod: _Pod) -> Iterator[Violation]:
    names = [str(each.get("name")) for each in pod.context.get("sysctls") or ()]
    if forbidden := [each for each in names if each not in _ALLOWED_SYSCTLS]:
        paths = tuple(("securityContext", "sysctls", each) for each in forbidden)
        yield Violation("forbidden sysctls", ", ".join(forbidden), paths)


def _windows(pod: _Pod) -> Iterator[Violation]:
    if (bad := pod.breaking(("windowsOptions", "hostProcess"), bool)).found:
        yield Violation(
            "hostProcess", f"{bad.text} must not set securityContext.windowsOptions.hostProcess=true", bad.paths
        )


def _escalation(pod: _Pod) -> Iterator[Violation]:
    bad = {path: each for path, each in pod.containers if _context(each).get("allowPrivilegeEscalation") is not False}
    if bad:
        names = _containers_text([path[1] for path in bad])
        detail = f"{names} must set securityContext.allowPrivilegeEscalation=false"
        paths = [path for path, each in bad.items() if "allowPrivilegeEscalation" in _context(each)]
        yield Violation(
            "allowPrivilegeEscalation != false",
            detail,
            tuple((*path, "securityContext", "allowPrivilegeEscalation") for path in paths),
        )


def _capabilities(pod: _Pod) -> Iterator[Violation]:
    missing: dict[FieldSteps, Object] = {}
    adding: dict[FieldSteps, list[str]] = {}
    for path, container in pod.containers:
        capabilities = _context(container).get("capabilities") or {}
        if "ALL" not in (capabilities.get("drop") or ()):
            missing[path] = capabilities
        if forbidden := [each for each in capabilities.get("add") or () if each != "NET_BIND_SERVICE"]:
            adding[path] = forbidden
    details = []
    if missing:
        names = _containers_text([path[1] for path in missing])
        details.append(f'{names} must set securityContext.capabilities.drop=["ALL"]')
    if adding:
        names = _containers_text([path[1] for path in adding])
        added = sorted({each for one in adding.values() for each in one})
        details.append(f"{names} must not include {_quoted(added)} in securityContext.capabilities.add")
    if details:
        written = dict.fromkeys([*(path for path, each in missing.items() if each), *adding])
        paths = tuple((*path, "securityContext", "capabilities") for path in written)
        yield Violation("unrestricted capabilities", "; ".join(details), paths)


def _proc_mount(pod: _Pod) -> Iterator[Violation]:
    if bad := _of_containers(pod, ("procMount",), lambda value: value != "Default"):
        values = _quoted(sorted(set(map(str, bad.values()))))
        detail = f"{_containers_text([path[1] for path in bad])} must not set securityContext.procMount to {values}"
        yield Violation("procMount", detail, tuple(bad))


def _volumes(pod: _Pod) -> Iterator[Violation]:
    bad = {
        str(each["name"]): next((key for key in each if key != "name"), "unknown")
        for each in pod.spec.get("volumes") or ()
        if not any(each.get(key) is not None for key in _ALLOWED_VOLUMES) and len(each) > 1
    }
    if bad:
        types, names = sorted(set(bad.values())), list(bad)
        subject = f"{_plural('volume', names)} {_quoted(names)} {_use(names)}"
        detail = f"{subject} {_plural('restricted volume type', types)} {_quoted(types)}"
        yield Violation("restricted volume types", detail, tuple(("volumes", each) for each in names))


def _non_root(pod: _Pod) -> Iterator[Violation]:
    if pod.has_user_namespace:
        return
    if (bad := pod.breaking(("runAsNonRoot",), lambda value: not value)).found:
        yield Violation(
            "runAsNonRoot != true", f"{bad.text} must not set securityContext.runAsNonRoot=false", bad.paths
        )
    elif pod.context.get("runAsNonRoot") is None and (names := _without(pod, ("runAsNonRoot",))):
        detail = f"pod or {_containers_text(names)} must set securityContext.runAsNonRoot=true"
        yield Violation("runAsNonRoot != true", detail)


def _user(pod: _Pod) -> Iterator[Violation]:
    if not pod.has_user_namespace and (bad := pod.breaking(("runAsUser",), lambda value: value == 0)).found:
        yield Violation("runAsUser=0", f"{bad.text} must not set runAsUser=0", bad.paths)


def _seccomp(pod: _Pod) -> Iterator[Violation]:
    field = ("seccompProfile", "type")
    if (bad := pod.breaking(field, lambda value: value not in _ALLOWED_PROFILES)).found:
        detail = f"{bad.text} must not set securityContext.seccompProfile.type to {bad.values}"
        yield Violation("seccompProfile", detail, tuple(path[:-1] for path in bad.paths))
    elif _at(pod.context, field) is None and (names := _without(pod, field)):
        subject = f"pod or {_containers_text(names)}"
        detail = f'{subject} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
        yield Violation("seccompProfile", detail)


_CHECKS: tuple[Callable[[_Pod], Iterator[Violation]], ...] = (
    _app_armor, _host_namespaces, _host_ports, _probe_hosts, _privileged, _selinux, _sysctls, _windows,
    _escalation, _capabilities, _proc_mount, _volumes, _non_root, _user, _seccomp,
)  # fmt: skip
"""Those of `baseline` first, each group in the order of the checks' names in Kubernetes."""


def _of_containers(pod: _Pod, field: FieldSteps, is_bad: Callable[[Any], bool]) -> dict[FieldSteps, Any]:
    """Fields of security contexts of containers that have a bad value."""
    found = {(*path, "securityContext", *field): _at(_context(each), field) for path, each in pod.containers}
    return {path: value for path, value in found.items() if value is not None and is_bad(value)}


def _without(pod: _Pod, field: FieldSteps) -> list[str]:
    return [path[1] for path, each in pod.containers if _at(_context(each), field) is None]


def _context(container: Object) -> Object:
    return container.get("securityContext") or {}


def _at(content: Object, field: FieldSteps) -> Any:
    for step in field[:-1]:
        content = content.get(step) or {}
    return content.get(field[-1])


def _containers_text(names: Iterable[str]) -> str:
    names = list(names)
    return f"{_plural('container', names)} {_quoted(names)}"


def _quoted(items: Iterable[str]) -> str:
    return ", ".join(f'"{each}"' for each in items)


def _plural(word: str, items: Any) -> str:
    return word if len(items) == 1 else f"{word}s"


def _use(items: Any) -> str:
    return "uses" if len(items) == 1 else "use"
