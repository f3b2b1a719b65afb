"""Starting on the disks of a Java bookie: its cookies, entry logs and journals are kept, and our index is built from
them.

`take_over` runs in the main thread at every start, after the cookies are validated and before the stores are opened;
it does nothing where our index exists. docs/operations.md tells what an operator sees, docs/decisions/0010 gives the
reasons.
"""

import logging
from contextlib import ExitStack
from pathlib import Path

from bookie.storage.takeover.disks import INDEX_NAME, require_no_java_since, to_take_over, was_taken_over
from bookie.storage.takeover.leftovers import remove_leftovers
from bookie.storage.takeover.rocksdb import held, is_rocksdb
from bookie.storage.tools.progress import Progress, Step, no_progress, no_step

__all__ = ["take_over"]

log = logging.getLogger(__name__)


def take_over(
    ledger_dirs: list[Path],
    index_dirs: list[Path],
    journal_dirs: list[Path],
    *,
    map_bytes: int,
    fence_all: bool = False,
    progress: Progress = no_progress,
    step: Step = no_step,
) -> ExitStack:
    """Build the index of every store that a Java bookie left here. All paths are `current` directories.

    Return the locks of Java's RocksDB databases: while they are held, no Java bookie starts here; close the stack to
    release them. Raises StartRefused for a problem that an operator must solve or decide, and OSError for a failed
    system call. No file of Java's is changed, and after a failure the next start begins again.
    """
    with ExitStack() as locks:
        databases = [path / name for path in index_dirs for name in ("ledgers", "locations")]
        locks.enter_context(held([path for path in databases if is_rocksdb(path)]))
        for ledgers, index in zip(ledger_dirs, index_dirs, strict=True):
            require_no_java_since(index / INDEX_NAME, journal_dirs)
            if was_taken_over(index / INDEX_NAME):
                remove_leftovers(ledgers)
        stores = to_take_over(ledger_dirs, index_dirs, journal_dirs)
        for disks in stores:  # rarely any, so the code for it is imported only when needed
            from bookie.storage.takeover.build import build_index  # noqa: PLC0415

            log.info("taking over the disks of a Java bookie", extra={"store": disks.ledgers})
            build_index(
                disks,
                journal_dirs,
                map_bytes=map_bytes,
                fence_all=fence_all,
                progress=progress,
                step=step,
            )
        return locks.pop_all()
