"""The files of the console, read once when the plane starts."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

__all__ = ["console_files", "File"]

CONSOLE = Path(__file__).resolve().parents[1] / "console"
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class File:
    """A file of the console; `tag` is its ETag."""

    content: bytes
    content_type: str
    tag: str


def console_files() -> dict[str, File]:
    """Return the files of the console by the path of their URL."""
    found = {}
    for path in sorted(CONSOLE.iterdir()):
        if path.suffix in TYPES:
            content = path.read_bytes()
            file = File(content, TYPES[path.suffix], f'"{hashlib.sha256(content).hexdigest()[:32]}"')
            found["/" if path.name == "index.html" else f"/console/{path.name}"] = file
    return found
