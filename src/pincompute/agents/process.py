"""Shutdown and HTTP server, shared by the processes of all agents."""

from __future__ import annotations

from pincompute.base.http_process import cancel_on_signal as cancel_on_signal, serve_http as serve_http
