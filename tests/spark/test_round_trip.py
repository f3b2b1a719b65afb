"""Format `bookkeeper` in one Spark session, written and read: the path through sink and source of the quick suite."""

from typing import Any

import pytest

pytestmark = [
    pytest.mark.interop,
    pytest.mark.quick,
    pytest.mark.leaks("gRPC keeps its threads as long as the process lives"),
]


def test_rows_that_were_written_are_read_in_order(spark: Any, three_uri: str) -> None:
    """Rows of two partitions become entries of two ledgers of a log, and come back with ids, sizes and positions."""
    frame = spark.range(0, 1000, 1, 2).selectExpr("concat('row ', id) AS value")
    options = {"metadataServiceUri": three_uri, "log": "round-trip"}
    frame.write.format("bookkeeper").options(ensembleSize=1, **options).mode("append").save()
    rows = spark.read.format("bookkeeper").options(**options).load().collect()
    found = sorted((row.ledger_id, row.entry_id, bytes(row.value)) for row in rows)
    partitions = {b"row 0": 0, b"row 500": 500}  # either may be written first, and so get the lower ledger id
    firsts = {ledger: partitions.pop(value) for ledger, entry, value in found if entry == 0}
    assert not partitions
    assert found == [
        (ledger, entry, b"row %d" % (first + entry)) for ledger, first in sorted(firsts.items()) for entry in range(500)
    ]
    assert all(row.entry_size == len(row.value) for row in rows)
