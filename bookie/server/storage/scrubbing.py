"""Assembles the scrub from directories, and from the digests in the metadata store. Main thread."""

import hashlib

from bookie._fast.wire.digest import Digester
from bookie.errors import NoSuchLedgerMetadata
from bookie.metadata.driver import MetadataDriver
from bookie.server.configuration.settings import Settings
from bookie.storage.layout import current
from bookie.storage.ledger_storage import LedgerStorage
from bookie.storage.scrub.scrubbing import Scrub

__all__ = ["make_scrub"]


def make_scrub(settings: Settings, storage: LedgerStorage, driver: MetadataDriver) -> Scrub:
    """Return the scrub of an open storage, not yet started."""

    def ask(ledger: int) -> Digester | None:
        try:
            metadata = driver.ledgers.read(ledger).value
        except NoSuchLedgerMetadata:
            return None
        if metadata.digest_type is None:
            return None
        mac_key = hashlib.sha1(b"mac" + metadata.password, usedforsecurity=False).digest()
        return Digester(metadata.digest_type, mac_key)

    return Scrub(settings.scrub, storage.scrubbers(), ask, keep_in=current(settings.storage.ledger_directories[0]))
