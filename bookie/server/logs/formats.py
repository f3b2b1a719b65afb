"""Log lines as `key=value` pairs or as JSON, on standard error, with the standard library alone.

Any thread. A message is a constant text; fields accompany it: `log.info("journal replayed", extra={"records": 7})`.
Line breaks and control characters in values are escaped, so that nobody can forge a line; fields whose names suggest
a secret are masked.
"""

import json
import logging
import re
import sys
import time
from collections.abc import Mapping

__all__ = ["configure", "redact"]

STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}
SECRET = re.compile(r"passw|secret|token|master_?key|credential", re.IGNORECASE)
USERINFO = re.compile(r"(?<=://)[^/@\s]+@")
PLAIN = re.compile(r"[!#-<>-~]+")


def configure(form: str, level: str) -> None:
    """Send all logging to standard error. `form` is `keyvalue` or `json`; `level` is a name of the logging module."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else KeyValueFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.captureWarnings(capture=True)
    if root.level > logging.DEBUG:
        logging.getLogger("kazoo").setLevel(max(root.level, logging.WARNING))


def redact(name: str, value: object) -> object:
    """Return `value`, or stars if `name` suggests a secret; user and password are removed from URIs."""
    if SECRET.search(name):
        return "***"
    return USERINFO.sub("***@", value) if isinstance(value, str) else value


def _facts(record: logging.LogRecord) -> Mapping[str, object]:
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    facts: dict[str, object] = {
        "time": f"{moment}.{int(record.msecs):03d}Z",
        "level": record.levelname.lower(),
        "logger": record.name,
        "msg": redact("msg", record.getMessage()),
    }
    for name, value in record.__dict__.items():
        if name not in STANDARD:
            facts[name] = redact(name, value)
    if record.exc_info:
        facts["trace"] = logging.Formatter().formatException(record.exc_info)
    return facts


class KeyValueFormatter(logging.Formatter):
    """`time=... level=... logger=... msg="..." name=value ...`; values with blanks or quotes are JSON strings."""

    def format(self, record: logging.LogRecord) -> str:
        return " ".join(f"{name}={_spell(value)}" for name, value in _facts(record).items())


class JsonFormatter(logging.Formatter):
    """One JSON object per line, with the same fields."""

    def format(self, record: logging.LogRecord) -> str:
        return json.dumps(_facts(record), default=str)


def _spell(value: object) -> str:
    text = str(value)
    return text if PLAIN.fullmatch(text) else json.dumps(text)
