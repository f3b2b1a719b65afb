"""The table of BP-62 that `make bench-batches` prints: the document's figures stand beside those of all clients."""

from perf.client.test_batch_table import ASYNCIO, JAVA, OURS, RANGES, ROWS, SIZES, Measured, table


def test_the_figures_of_the_document() -> None:
    """Both bookies and sizes have a line for each way to read; batches have their multiple of single reads."""
    rates = {JAVA: 10_000.0, OURS: 50_000.0, ASYNCIO: 40_000.0}
    found = [
        Measured(
            kind,
            size,
            name,
            {client: rate * (10 if row.batch else 1) for client, rate in rates.items()}
            | ({RANGES: 900_000.0} if row.batch else {}),
            {OURS: 5.0, ASYNCIO: 4.0},
        )
        for kind in ("ours", "java")
        for size in SIZES
        for name, row in ROWS.items()
    ]
    lines = table(found)
    assert len(lines) == 2 + 2 * len(SIZES) * 4
    assert lines[0].count("|") == lines[1].count("|") == lines[2].count("|")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[2:]]
    assert [row[:3] for row in rows] == [[one.kind, str(one.size), one.name] for one in found]
    assert [row[3] for row in rows[:4]] == ["", "5,002", "112,320 (22.5x)", "82,129 (16.4x)"]
    assert rows[2][4:8] == ["100,000 (10.0x)", "500,000 (10.0x)", "400,000 (10.0x)", "900,000 (18.0x)"]
    assert rows[2][8:] == ["5.0", "4.0", ""]
