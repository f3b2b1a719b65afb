"""The custom metadata of a ledger that says which job wrote it, so that orphans can be recognised years later."""

from dataclasses import dataclass

from bookie.metadata.records.ledger_metadata import LedgerMetadata

__all__ = ["Labels", "labels_of"]

PREFIX = "spark."
NUMBERS = ("batch", "partition", "attempt", "stale_at_ms")


@dataclass(frozen=True)
class Labels:
    """The writer of a ledger. `log` is empty if there is none; `query` is empty and `batch` 0 for a batch job."""

    job: str
    query: str
    batch: int
    partition: int
    attempt: int
    log: str
    stale_at_ms: int
    """The time, in milliseconds since 1970, from which the ledger is no longer committed and may be deleted; 0:
    never.
    """

    def custom(self) -> dict[str, bytes]:
        """Return the labels as custom metadata."""
        return {
            PREFIX + "job": self.job.encode(),
            PREFIX + "query": self.query.encode(),
            PREFIX + "batch": b"%d" % self.batch,
            PREFIX + "partition": b"%d" % self.partition,
            PREFIX + "attempt": b"%d" % self.attempt,
            PREFIX + "log": self.log.encode(),
            PREFIX + "stale_at_ms": b"%d" % self.stale_at_ms,
        }


def labels_of(metadata: LedgerMetadata) -> Labels | None:
    """Return the labels of a ledger, or None if it was not written by the sink."""
    custom = metadata.custom
    try:
        job, query, log = (custom[PREFIX + name].decode() for name in ("job", "query", "log"))
        batch, partition, attempt, stale = (int(custom[PREFIX + name]) for name in NUMBERS)
    except (KeyError, ValueError):
        return None
    return Labels(job, query, batch, partition, attempt, log, stale)
