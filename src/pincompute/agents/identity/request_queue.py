"""Queue of certificate requests: fair between projects and pods, with a few requests of each pod."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class PodKey(NamedTuple):
    """Pod for which a certificate is requested."""

    namespace: str
    pod: str


class RequestQueue(Generic[T]):
    """Holds each request once. Projects take turns, and within a project its pods.

    However many requests one pod sends, those of another pod wait for one request of each project at most.
    """

    def __init__(self) -> None:
        # Ordered dictionaries, since the first key of a dict costs more the more were removed before it.
        self._namespaces: OrderedDict[str, OrderedDict[str, OrderedDict[T, None]]] = OrderedDict()
        self._filled = asyncio.Event()
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def put(self, key: PodKey, request: T, limit: int | None = None) -> T | None:
        """Adds a request. Returns the oldest one of the pod, which is removed, if it has more than `limit`."""
        pods = self._namespaces.setdefault(key.namespace, OrderedDict())
        requests = pods.setdefault(key.pod, OrderedDict())
        if request in requests:
            return None
        requests[request] = None
        self._length += 1
        self._filled.set()
        if limit is None or len(requests) <= limit:
            return None
        oldest = next(iter(requests))
        self.discard(key, oldest)
        return oldest

    def discard(self, key: PodKey, request: T) -> None:
        pods = self._namespaces.get(key.namespace, OrderedDict())
        requests = pods.get(key.pod, OrderedDict())
        if request not in requests:
            return
        del requests[request]
        self._length -= 1
        if not requests:
            del pods[key.pod]
        if not pods:
            del self._namespaces[key.namespace]

    async def take(self) -> T:
        """Removes and returns the next request; waits for one."""
        while not self._length:
            self._filled.clear()
            await self._filled.wait()
        namespace, pods = next(iter(self._namespaces.items()))
        pod, requests = next(iter(pods.items()))
        request = next(iter(requests))
        self.discard(PodKey(namespace, pod), request)
        # Round robin: the pod and the project go to the end.
        if pod in pods:
            pods.move_to_end(pod)
        if namespace in self._namespaces:
            self._namespaces.move_to_end(namespace)
        return request
