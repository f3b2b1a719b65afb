"""Release of disk blocks that a killed process had reserved beyond the end of entry logs for records to come.

They lie beyond the end of a file, so nothing reads them, and no file size shows them. Main thread, at start.
"""

import logging
import os
from pathlib import Path

from bookie.storage.layout import HEX_NAME

__all__ = ["give_back_blocks"]

BLOCK_BYTES = 512
"""The unit of `st_blocks`."""
LEAST_BYTES = 1 << 20
"""Fewer bytes may be metadata of the file system, and are not worth a write."""

log = logging.getLogger(__name__)


def give_back_blocks(directory: Path) -> int:
    """Truncate each entry log of a `current` directory at its present size, and return the bytes released.

    If a log cannot be truncated, it keeps its blocks, which costs nothing but space.
    """
    freed = 0
    for path in directory.iterdir():
        name = HEX_NAME.match(path.name)
        if not name or name[2] != "log":
            continue
        try:
            before = path.stat()
            if before.st_blocks * BLOCK_BYTES < before.st_size + LEAST_BYTES:
                continue
            os.truncate(path, before.st_size)
            freed += (before.st_blocks - path.stat().st_blocks) * BLOCK_BYTES
        except OSError as error:
            log.warning(
                "blocks reserved beyond the end of an entry log stay allocated", extra={"file": path, "error": error}
            )
    if freed:
        log.info("blocks beyond the ends of entry logs were released", extra={"directory": directory, "bytes": freed})
    return freed
