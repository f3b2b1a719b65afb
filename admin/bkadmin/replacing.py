"""Another id for a bookie in the metadata of ledgers: after its address changed, or for a copy of its disks."""

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
    """Ledgers that were changed, or would be, and ledgers looked at. At most `per_s` changes a second."""
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
        except NoSuchLedgerMetadata:  # deleted since it was listed
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
    raise MetadataVersionConflict(f"ledger {ledger} is changed by others again and again; call it once more later")
