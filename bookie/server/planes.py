"""The planes of a bookie: they answer probes from the beginning of a start on, and serve once the bookie can be asked.

Main thread.
"""

import logging
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from bookie.admin_port import own_token
from bookie.server.control import Control, Plane, discover

__all__ = ["make_token", "open_planes", "start_planes"]

GRACE_S = 1.0
log = logging.getLogger(__name__)


def open_planes(control: Control, undo: ExitStack) -> dict[str, Plane]:
    """Make the installed planes, let them answer probes, and return them by name. Raises StartRefused."""
    planes = {name: plane for name, factory in discover() if (plane := factory(control)) is not None}
    for plane in planes.values():
        undo.callback(plane.stop, 0)
        plane.listen()
    return planes


def start_planes(planes: Mapping[str, Plane], undo: ExitStack) -> dict[str, tuple[str, int]]:
    """Let planes serve, and return their addresses. They stop when `undo` gets here, before what they show does.

    Raises StartRefused.
    """
    addresses = {}
    for name, plane in planes.items():
        undo.callback(plane.stop, GRACE_S)
        host, port = addresses[name] = plane.start()
        log.info("plane open", extra={"plane": name, "host": host, "port": port})
    return addresses


def make_token(directory: Path) -> Path | None:
    """Create the bookie's own token in its first ledger directory; return None if it cannot be written, as on a full
    disk, so that only configured ones are valid.
    """
    try:
        return own_token.make(directory)
    except OSError as error:
        facts = {"directory": directory, "error": error.strerror}
        log.warning("the bookie's own token cannot be written; only configured tokens are valid", extra=facts)
        return None
