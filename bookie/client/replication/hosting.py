"""Auto-recovery inside `bookie-server`: what the group `bookie.services` finds. Main thread."""

from collections.abc import Mapping
from typing import Any, Protocol

from bookie.metadata.driver import MetadataDriver

__all__ = ["open_service"]


class Host(Protocol):
    """What is needed of a bookie."""

    @property
    def bookie_id(self) -> str: ...
    @property
    def metadata(self) -> MetadataDriver: ...
    @property
    def recovery(self) -> Mapping[str, Any] | None: ...


class Shared:
    """The bookie's own driver: it starts and stops that itself."""

    def __init__(self, driver: MetadataDriver) -> None:
        self.cluster = driver.cluster
        self.registrations = driver.registrations
        self.bookies = driver.bookies
        self.cookies = driver.cookies
        self.ledgers = driver.ledgers
        self.logs = driver.logs
        self.replication = driver.replication
        self.election = driver.election

    def start(self) -> None:
        """It is."""

    def stop(self) -> None:
        """It will be."""


def open_service(host: Host) -> Any:
    """The `AutoRecovery` of this bookie; None where it is not asked for. ConfigurationError."""
    if host.recovery is None:
        return None
    from bookie.client.replication.service import AutoRecovery, split  # noqa: PLC0415 - most bookies do without

    config, settings = split(host.recovery)
    return AutoRecovery(host.bookie_id, Shared(host.metadata), config, settings)
