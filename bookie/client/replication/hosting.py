"""Auto-recovery inside `bookie-server`, found through the entry point group `bookie.services`. Main thread."""

from collections.abc import Mapping
from typing import Any, Protocol

from bookie.metadata.driver import MetadataDriver

__all__ = ["open_service"]


class Host(Protocol):
    """What auto-recovery needs of the bookie that hosts it."""

    @property
    def bookie_id(self) -> str: ...
    @property
    def metadata(self) -> MetadataDriver: ...
    @property
    def recovery(self) -> Mapping[str, Any] | None: ...


class Shared:
    """The bookie's own metadata driver, which the bookie itself starts and stops."""

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
        """Do nothing, since the driver is started."""

    def stop(self) -> None:
        """Do nothing, since the bookie stops the driver."""

    def hurry(self, patience_s: float) -> None:
        """Do nothing, since the bookie hurries the driver."""


def open_service(host: Host) -> Any:
    """Return the `AutoRecovery` of this bookie, or None if it is not enabled. Raises ConfigurationError."""
    if host.recovery is None:
        return None
    from bookie.client.replication.service import AutoRecovery, split  # noqa: PLC0415 - most bookies do not need it

    config, settings = split(host.recovery)
    return AutoRecovery(host.bookie_id, Shared(host.metadata), config, settings)
