"""Disk blocks behind the end of entry logs: a process that is killed has reserved some for records that never came.

They lie behind the file's end, so nobody reads them and no size tells of them. Main thread, at start.
"""

import logging
import os
from pathlib import Path

from bookie.storage.layout import HEX_NAME

__all__ = ["give_back_blocks"]

BLOCK_BYTES = 512
"""What `st_blocks` counts in."""
LEAST_BYTES = 1 << 20
"""Less than this may be the file system's own bookkeeping, and is not worth a write."""

log = logging.getLogger(__name__)


def give_back_blocks(directory: Path) -> int:
    """Cut each entry log of a `current` directory at its end; the bytes that were given back. No file changes its size.

    A log that cannot be cut keeps its blocks: that costs room, nothing else.
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
            log.warning("blocks behind an entry log's end stay reserved", extra={"file": path, "error": error})
    if freed:
        log.info("blocks behind the ends of entry logs given back", extra={"directory": directory, "bytes": freed})
    return freed
