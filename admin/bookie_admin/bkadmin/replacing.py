"""Replaces a bookie's id in the metadata of ledgers, after its address changed or its disks were copied."""

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from bookie.errors import MetadataVersionConflict, NoSuchLedgerMetadata
from bookie.terminal.output import progress_bar

if TYPE_CHECKING:
    from bookie.metadata.driver import MetadataDriver

__all__ = ["replace_bookie"]

ATTEMPTS = 10


def replace_bookie(
    driver: "MetadataDriver", old: str, new: str, *, per_s: int, limit: int | None, dry_run: bool
) -> tuple[int, int]:
    """Replace bookie `old` with `new` in the ensembles of all ledgers.

    Args:
        driver: a started metadata driver.
        old: the bookie id that ledgers name now.
        new: the bookie id to write instead.
        per_s: the highest rate of changes, in ledgers a second.
        limit: stop after this many changes; None: no limit.
        dry_run: only count the ledgers that would be changed.

    Returns:
        The number of ledgers changed (or to be changed), and the number of ledgers examined.

    Raises:
        MetadataVersionConflict: other processes changed a ledger at each of ten attempts.
    """
    changed = seen = 0
    begun = time.monotonic()
    with progress_bar("ledgers") as bar:
        for page in driver.ledgers.ranges():
            for ledger in page:
                if limit is not None and changed >= limit:
                    return changed, seen
                seen += 1
                if _replace(driver, ledger, old, new, dry_run=dry_run):
                    changed += 1
                    if not dry_run:
                        time.sleep(max(0.0, begun + changed / per_s - time.monotonic()))
            bar(seen, seen)
    return changed, seen


def _replace(driver: "MetadataDriver", ledger: int, old: str, new: str, *, dry_run: bool) -> bool:
    for _ in range(ATTEMPTS):
        try:
            found = driver.ledgers.read(ledger)
        except NoSuchLedgerMetadata:  # the ledger was deleted after it was listed
            return False
        value = found.value
        if not any(old in one.bookies for one in value.segments):
            return False
        if dry_run:
            return True
        segments = tuple(
            replace(one, bookies=tuple(new if name == old else name for name in one.bookies)) for one in value.segments
        )
        try:
            driver.ledgers.write(ledger, replace(value, segments=segments), found.version)
        except MetadataVersionConflict:
            continue
        return True
    raise MetadataVersionConflict(
        f"ledger {ledger}: other processes keep changing its metadata; run the command again later"
    )
