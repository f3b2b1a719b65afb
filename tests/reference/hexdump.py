"""Reads the hex pictures in tests/golden: `size N`, then lines `offset  bytes`; what is not shown is zero."""

from pathlib import Path

GOLDEN = Path(__file__).resolve().parent.parent / "golden"


def golden(name: str) -> bytes:
    """Return the bytes of tests/golden/`name`."""
    data = bytearray()
    for line in (GOLDEN / name).read_text().splitlines():
        if line.startswith("size "):
            data = bytearray(int(line.split()[1]))
        elif line and not line.startswith("#"):
            offset, rest = line.split(maxsplit=1)
            piece = bytes.fromhex(rest)
            data[int(offset, 16) : int(offset, 16) + len(piece)] = piece
    return bytes(data)
