"""A program that prints every pair of a RocksDB: `python -m bookie.storage.takeover.rocksdb_pairs DIRECTORY`.

On standard output, for each pair: u32 bytes of the key, u32 bytes of the value, both. Even a read-only opening would
leave files of its own beside the data, so RocksDB is given a directory of links to it.
"""

import struct
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

__all__ = ["unpack"]

SIZES = struct.Struct(">II")
NOT_DATA = frozenset({"LOCK", "LOG", "rocksdict-config.json"})
"""What an opening writes to."""


def unpack(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The pairs in the output of this program."""
    at = 0
    while at < len(data):
        key, value = SIZES.unpack_from(data, at)
        at += SIZES.size
        yield data[at : at + key], data[at + key : at + key + value]
        at += key + value


def _print(path: Path) -> None:
    from rocksdict import AccessType, Options, Rdict  # noqa: PLC0415  (an optional package)

    with tempfile.TemporaryDirectory(prefix="bookie-java-disks-") as scratch:
        for file in path.iterdir():
            if file.name not in NOT_DATA and not file.name.startswith("LOG.old"):
                (Path(scratch) / file.name).symlink_to(file.absolute())
        options = Options(raw_mode=True)
        options.create_if_missing(False)
        options.set_db_log_dir(scratch)
        database = Rdict(scratch, options=options, access_type=AccessType.read_only())
        for key, value in database.items():
            assert isinstance(key, bytes)
            sys.stdout.buffer.write(SIZES.pack(len(key), len(value)) + key + value)
        sys.stdout.buffer.flush()
        database.close()


if __name__ == "__main__":
    _print(Path(sys.argv[1]))
