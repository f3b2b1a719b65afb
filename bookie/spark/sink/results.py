"""What a task attempt reports to the driver: the ledgers that it wrote. Pickled by Spark."""

from dataclasses import dataclass

from pyspark.sql.datasource import WriterCommitMessage

__all__ = ["Result", "Written"]


@dataclass(frozen=True)
class Written:
    """A closed ledger that was written."""

    log: str
    ledger: int
    entries: int
    bytes: int


@dataclass(frozen=True)
class Result(WriterCommitMessage):
    """The result of one attempt that wrote all of its rows; `written` has its ledgers in their order."""

    job: str
    query: str
    batch: int
    partition: int
    stale_at_ms: int
    written: tuple[Written, ...]
