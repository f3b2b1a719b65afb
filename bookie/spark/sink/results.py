"""What a task attempt tells the driver: which ledgers it wrote. Pickled by Spark."""

from dataclasses import dataclass

from pyspark.sql.datasource import WriterCommitMessage

__all__ = ["Result", "Written"]


@dataclass(frozen=True)
class Written:
    """A closed ledger."""

    log: str
    ledger: int
    entries: int
    bytes: int


@dataclass(frozen=True)
class Result(WriterCommitMessage):
    """Of one attempt that wrote all of its rows, in the order in which its ledgers follow each other."""

    job: str
    query: str
    batch: int
    partition: int
    stale_at_ms: int
    written: tuple[Written, ...]
