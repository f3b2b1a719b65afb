"""Single requests to one bookie, each over a connection of its own."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

from bookie.errors import BookieUnavailable, BookKeeperError

if TYPE_CHECKING:
    from bookie.client import Security
    from bookie.client.channel.v3 import ChannelV3
    from bookie.client.wire.bookie_space import BookieInfo
    from bookie.metadata.bookies.service_info import BookieServiceInfo
    from bookie.metadata.driver import MetadataDriver

__all__ = ["ask", "client_settings", "security_of", "space"]

T = TypeVar("T")


def client_settings(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Return a bookie's keys for its own client without those of auto-recovery."""
    from bookie.client.replication.settings import RecoverySettings  # noqa: PLC0415

    others = {one.metadata["key"] for one in fields(RecoverySettings)}
    return {key: value for key, value in keys.items() if key not in others}


def security_of(keys: Mapping[str, Any]) -> "Security | None":
    """Return how a client with these settings encrypts and authenticates; None if it does neither.

    Args:
        keys: settings of the client.

    Raises:
        ConfigurationError: a setting is wrong, or a file cannot be used.
    """
    from bookie.client.config import ClientConfig  # noqa: PLC0415
    from bookie.client.wire import tls  # noqa: PLC0415

    found = tls.security_of(ClientConfig.of(keys))
    return None if found.encrypt is None and found.auth is None else found


def ask(
    driver: "MetadataDriver",
    bookie: str,
    timeout_s: float,
    question: "Callable[[ChannelV3], T]",
    security: "Security | None" = None,
) -> T:
    """Connect to a bookie and send it requests.

    Args:
        driver: a started metadata driver, which has the bookie's address and features.
        bookie: the bookie's id.
        timeout_s: how long to wait for the connection and for each response, in seconds.
        question: sends the requests over an open channel, and returns the result.
        security: how to encrypt and authenticate; None means neither.

    Raises:
        BookieUnavailable: the bookie is not registered or cannot be reached.
        RequestTimeout: it did not answer in time.
        BookKeeperError: raised by `question`.
    """
    from bookie.client.channel.v3 import ChannelV3  # noqa: PLC0415
    from bookie.client.wire.extensions import Extensions  # noqa: PLC0415

    info, host, port = _found(driver, bookie)
    try:
        opened = ChannelV3.connect(host, port, timeout_s=timeout_s, connect_timeout_s=timeout_s, security=security)
    except BookieUnavailable as error:
        raise BookieUnavailable(f"bookie {bookie}: {error}") from error
    with opened as channel:
        channel.extensions = Extensions(info.v3_extensions())
        return question(channel)


def space(
    driver: "MetadataDriver", bookie: str, timeout_s: float, security: "Security | None" = None
) -> "BookieInfo | str":
    """Return the free and total space of a bookie, or in one line why it could not be determined."""
    from bookie.client.wire.bookie_space import ask_space  # noqa: PLC0415

    try:
        if security is not None:
            return ask(driver, bookie, timeout_s, lambda channel: channel.bookie_info(), security)
        _, host, port = _found(driver, bookie)
        return ask_space(host, port, timeout_s)
    except BookKeeperError as error:
        return str(error)


def _found(driver: "MetadataDriver", bookie: str) -> "tuple[BookieServiceInfo, str, int]":
    """Return the bookie's registration and the address of its data port.

    Raises:
        BookieUnavailable: it is not registered, or publishes no data port.
    """
    from bookie.metadata.bookies.service_info import parse_service_info  # noqa: PLC0415

    data = driver.bookies.info(bookie)
    if data is None:
        if bookie in driver.bookies.known():
            raise BookieUnavailable(f"bookie {bookie} is down: it is not registered; start it")
        raise BookieUnavailable(f"bookie {bookie} is unknown; bkadmin listbookies lists all")
    info = parse_service_info(bookie, data)
    end = info.client_endpoint()
    if end is None:
        raise BookieUnavailable(f"bookie {bookie} publishes no data port; check its version")
    return info, end.host, end.port
