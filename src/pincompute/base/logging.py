"""Structured logging to stderr: one JSON object a line, or short colored lines on a terminal."""

from __future__ import annotations

import sys

import structlog


def configure(level: str = "info", *, process: str) -> None:
    """Configure structlog. Called once by each long-running process; commands print messages instead."""
    # Tracebacks omit local variables, which may hold secrets.
    if sys.stderr.isatty():
        renderers = [structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]
    else:
        tracebacks = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
        renderers = [structlog.processors.ExceptionRenderer(tracebacks), structlog.processors.JSONRenderer()]
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *renderers,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(process=process)
