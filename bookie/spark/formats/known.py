"""The digest of a ledger according to its metadata, looked up when a scan meets the ledger. Runs in a task's
process.
"""

from functools import lru_cache

from bookie.client.entries.digest import Digest, DigestType
from bookie.errors import NoSuchLedgerMetadata
from bookie.spark.clients import client_of
from bookie.spark.options import Cluster

__all__ = ["known_digest"]


@lru_cache(maxsize=1 << 16)
def known_digest(cluster: Cluster, ledger: int) -> Digest | None:
    """Return the digest of a ledger; it is cached, because digest type and password of a ledger never change.

    Returns:
        None if the ledger was deleted, or its metadata has no digest type.

    Raises:
        ConfigurationError: the settings of the client are invalid.
        MetadataStoreError: the metadata store cannot be read.
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
    """Return a shared digest, because applications use the same password for many ledgers."""
    return Digest.of(DigestType(kind), password)
