"""A program that prints every pair of a RocksDB database, or writes one, so that RocksDB runs in a separate process.

    python -m bookie.storage.takeover.rocksdb_pairs DIRECTORY
    python -m bookie.storage.takeover.rocksdb_pairs --write DIRECTORY

Pairs are on standard output or input, each as u32 length of the key, u32 length of the value, key, value. Even opening
a database read-only would create files beside the data, so RocksDB is given a directory of links to it. A database is
written in a form that the RocksDB version of Java bookies can read.
"""

import os
import shutil
import struct
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

__all__ = ["pack", "unpack"]

SIZES = struct.Struct(">II")
CONFIG = "rocksdict-config.json"
TABLE_FORMAT = 5
NOT_DATA = frozenset({"LOCK", "LOG", CONFIG})
"""Files that opening a database writes to."""


def unpack(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the pairs in the output of this program."""
    at = 0
    while at < len(data):
        key, value = SIZES.unpack_from(data, at)
        at += SIZES.size
        yield data[at : at + key], data[at + key : at + key + value]
        at += key + value


def pack(key: bytes, value: bytes) -> bytes:
    """Encode one pair as `unpack` reads it."""
    return SIZES.pack(len(key), len(value)) + key + value


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
            sys.stdout.buffer.write(pack(key, value))
        sys.stdout.buffer.flush()
        database.close()


def _write(path: Path) -> None:
    from rocksdict import BlockBasedOptions, ChecksumType, DBCompressionType, Options, Rdict  # noqa: PLC0415

    shutil.rmtree(path, ignore_errors=True)
    blocks = BlockBasedOptions()
    blocks.set_format_version(TABLE_FORMAT)
    blocks.set_checksum_type(ChecksumType.xxhash())
    options = Options(raw_mode=True)
    options.set_block_based_table_factory(blocks)
    options.set_compression_type(DBCompressionType.lz4())
    database = Rdict(str(path), options=options)
    for key, value in unpack(sys.stdin.buffer.read()):
        database[key] = value
    database.flush()
    database.close()
    for name in sorted(path.iterdir()):
        with name.open("rb") as file:
            os.fsync(file.fileno())
    (path / CONFIG).unlink(missing_ok=True)


if __name__ == "__main__":
    if sys.argv[1] == "--write":
        _write(Path(sys.argv[2]))
    else:
        _print(Path(sys.argv[1]))
