"""Open a ledger: check the password and the digest type, and recover the ledger if requested. Event loop."""

import hmac
from dataclasses import dataclass, field

from bookie.client.config import ClientConfig
from bookie.client.entries.digest import Digest, DigestType
from bookie.client.ledgers.context import ClientContext
from bookie.client.ledgers.metadata_loop import Known
from bookie.client.ledgers.reader import LedgerReader
from bookie.client.ledgers.recovery import recover
from bookie.errors import DigestMismatch, IncorrectParameter, UnauthorizedAccess
from bookie.metadata.records.ledger_metadata import LedgerMetadata

__all__ = ["credentials", "Credentials", "digest_of", "digest_type_of", "open_ledger", "open_reader"]

OTHER_NAMES = {"MAC": "HMAC"}


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a client presents to open a ledger. Password None is for administrators: the metadata are trusted."""

    password: bytes | None = field(default=b"", repr=False)
    digest_type: DigestType = DigestType.CRC32
    """It matters only where digest types are not detected (`enableDigestTypeAutodetection`)."""


async def open_ledger(
    context: ClientContext, ledger: int, wanted: Credentials, *, recovery: bool
) -> tuple[Known, Digest]:
    """Return the metadata and the keys of a ledger. With `recovery` it is then closed, and its writer can add no
    more.

    Raises IncorrectParameter, NoSuchLedgerMetadata, UnauthorizedAccess, DigestMismatch, LedgerRecoveryError or
    RequestTimeout.
    """
    if ledger < 0:
        raise IncorrectParameter(f"ledger id {ledger} must be at least 0")
    known = Known(ledger, await context.metadata.read(ledger))
    digest = credentials(context.config, ledger, known.metadata, wanted)
    if recovery and not known.closed:
        await recover(context, known, digest)
    return known, digest


async def open_reader(context: ClientContext, ledger: int, wanted: Credentials, *, recovery: bool) -> LedgerReader:
    """Open a ledger for reading. If it is not closed, read its LAC from the bookies and start to watch its metadata.

    Raises the errors of `open_ledger`, and ReadError.
    """
    known, digest = await open_ledger(context, ledger, wanted, recovery=recovery)
    reader = LedgerReader(ledger, known.stored, digest, context)
    if not known.closed:
        await reader.read_last_add_confirmed()
        reader.start()
    return reader


def credentials(config: ClientConfig, ledger: int, metadata: LedgerMetadata, wanted: Credentials) -> Digest:
    """Return the keys of a ledger. Raises UnauthorizedAccess or DigestMismatch."""
    stored = metadata.digest_type
    if wanted.password is None:
        return digest_of(metadata, config)
    if stored is None:  # metadata of old ledgers have no password, so only the bookies can check it
        return Digest.of(wanted.digest_type, wanted.password)
    if not hmac.compare_digest(metadata.password, wanted.password):
        raise UnauthorizedAccess(f"ledger {ledger}: wrong password; open it with the one that it was created with")
    if not config.digest_autodetection and int(stored) != wanted.digest_type:
        raise DigestMismatch(
            f"ledger {ledger} has {stored.name} digests, not {wanted.digest_type.name}: open it with that type, or"
            " with enableDigestTypeAutodetection=true"
        )
    return Digest.of(DigestType(stored), wanted.password)


def digest_of(metadata: LedgerMetadata, config: ClientConfig) -> Digest:
    """Return the keys according to a ledger's metadata, or according to the configuration if the metadata have none."""
    if metadata.digest_type is None:
        return Digest.of(digest_type_of(config.admin_digest_type), config.admin_password.encode())
    return Digest.of(DigestType(metadata.digest_type), metadata.password)


def digest_type_of(given: str | DigestType) -> DigestType:
    """Return a digest type by its name in any case; MAC means HMAC. Raises IncorrectParameter."""
    if isinstance(given, DigestType):
        return given
    try:
        name = given.upper()
        return DigestType[OTHER_NAMES.get(name, name)]
    except (AttributeError, KeyError):
        names = ", ".join(kind.name for kind in DigestType)
        raise IncorrectParameter(f"digest type {given!r} must be one of {names}") from None
