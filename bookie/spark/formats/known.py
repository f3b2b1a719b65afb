"""What protects the entries of a ledger, as its metadata has it, asked for when a scan meets it. A task's process."""

from functools import lru_cache

from bookie.client.entries.digest import Digest, DigestType
from bookie.errors import NoSuchLedgerMetadata
from bookie.spark.clients import client_of
from bookie.spark.options import Cluster

__all__ = ["known_digest"]


@lru_cache(maxsize=1 << 16)
def known_digest(cluster: Cluster, ledger: int) -> Digest | None:
    """Neither type nor password of a ledger ever changes. None: it was deleted, or is older than types in metadata.

    MetadataStoreError, ConfigurationError.
    """
    if ledger < 0:
        return None
    try:
        metadata = client_of(cluster).ledger_metadata(ledger)
    except NoSuchLedgerMetadata:
        return None
    return _digest(metadata.digest_type, metadata.password) if metadata.digest_type else None


@lru_cache(maxsize=1 << 10)
def _digest(kind: int, password: bytes) -> Digest:
    """Applications give one password to many ledgers."""
    return Digest.of(DigestType(kind), password)
