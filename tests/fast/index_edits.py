"""Changes of an index by LMDB itself, as if its pages were damaged: nothing but the runs tells of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import lmdb


@contextmanager
def editing_runs(directory: Path) -> Iterator[lmdb.Transaction]:
    """Yield a transaction of the table of runs, whose commit has a number like those of the index (index.guard)."""
    with lmdb.open(str(directory), max_dbs=4) as environment:
        main, runs = environment.open_db(), environment.open_db(b"locations")
        with environment.begin(runs, write=True) as transaction:
            yield transaction
            transaction.put(b"commit", transaction.id().to_bytes(8, "big"), db=main)
