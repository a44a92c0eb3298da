"""Limits of received websocket messages, the same for the desk, the CLI and the Kubernetes client.

Compression is off everywhere: a short message could expand to any size before its size is checked.
"""

from __future__ import annotations

MAX_MESSAGE_BYTES = 2**20
"""Messages must be shorter. A kubelet sends 32 KiB at most, and the CLI what it reads from the terminal at once."""
