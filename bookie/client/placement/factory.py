"""Create the placement policy that a configuration names."""

import logging
from collections.abc import Callable
from random import Random

from bookie.client.config import ClientConfig
from bookie.client.features import Features
from bookie.client.placement.base import Policy
from bookie.client.placement.default import DefaultPlacement
from bookie.client.placement.locations import Locations, host_of
from bookie.client.placement.rack import RackPlacement
from bookie.client.placement.region import RegionPlacement
from bookie.client.placement.resolver import Resolver, resolver_for
from bookie.client.placement.zone import ZonePlacement
from bookie.errors import ConfigurationError

__all__ = ["placement_for"]

DEFAULT_LOCATIONS = {
    "rack": "/default-rack",
    "region": "/default-region/default-rack",
    "zone": "/default-zone/default-upgradedomain",
}

log = logging.getLogger(__name__)


def placement_for(
    config: ClientConfig,
    random: Random,
    clock: Callable[[], float],
    *,
    resolver: Resolver | None = None,
    features: Features | None = None,
    hosts: Callable[[str], str | None] = host_of,
) -> Policy:
    """Create the placement policy that the configuration names. It knows no bookies until `bookies_changed` is
    called.

    Args:
        config: The settings.
        random: The source of randomness.
        clock: Returns the time of the event loop, in seconds.
        resolver: A network location resolver instead of the configured one. It is asked here for the client's own
            location, which may block.
        features: The switches that the policy observes.
        hosts: Returns the host of a bookie id, or None if it is unknown.

    Raises:
        ConfigurationError: The resolver cannot be used, or settings contradict each other.
    """
    kind = config.placement_policy
    if kind == "default":
        return DefaultPlacement(config, random)
    if resolver is None:
        resolver = _resolver(config)
    locations = Locations(resolver, DEFAULT_LOCATIONS[kind], hosts)
    local = locations.default
    if not config.local_node_ignored:
        local = locations.local(by_name=config.local_node_by_hostname)
    if kind == "rack":
        return RackPlacement(config, random, clock, locations, local)
    if kind == "region":
        return RegionPlacement(config, random, clock, locations, local, features or Features())
    return ZonePlacement(config, random, clock, locations, local)


def _resolver(config: ClientConfig) -> Resolver | None:
    """Return the configured resolver. Without one all bookies have the same location, unless racks must be known."""
    needed = config.racks_enforced or config.placement_policy == "zone"
    try:
        resolver = resolver_for(config)
    except ConfigurationError as error:
        if needed:
            raise
        log.warning("all bookies are assumed to be in the same rack: %s", error)
        return None
    if resolver is None and needed:
        raise ConfigurationError(
            "networkTopologyScriptFileName is not set: enforcing racks or zones needs it, or reppDnsResolverClass"
        )
    return resolver
