"""Structured logs: one JSON object a line on stderr, or short lines where a person is looking."""

from __future__ import annotations

import sys

import structlog


def configure(level: str = "info", *, process: str) -> None:
    """Called once by each long-running process; commands do not log, they speak."""
    # Tracebacks never show the values of variables: they may hold secrets.
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
