"""What the custom metadata of a ledger says about who wrote it, so that its fate can be decided years later."""

from dataclasses import dataclass

from bookie.metadata.records.ledger_metadata import LedgerMetadata

__all__ = ["Labels", "labels_of"]

PREFIX = "spark."
NUMBERS = ("batch", "partition", "attempt", "stale_at_ms")


@dataclass(frozen=True)
class Labels:
    """`log`: empty where there is none. `query` and `batch`: empty and 0 for what is no stream."""

    job: str
    query: str
    batch: int
    partition: int
    attempt: int
    log: str
    stale_at_ms: int
    """From then on it is not committed any more, and may be deleted; 0: never."""

    def custom(self) -> dict[str, bytes]:
        """As custom metadata."""
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
    """None: no sink wrote this ledger."""
    custom = metadata.custom
    try:
        job, query, log = (custom[PREFIX + name].decode() for name in ("job", "query", "log"))
        batch, partition, attempt, stale = (int(custom[PREFIX + name]) for name in NUMBERS)
    except (KeyError, ValueError):
        return None
    return Labels(job, query, batch, partition, attempt, log, stale)
