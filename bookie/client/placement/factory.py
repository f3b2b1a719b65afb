"""The policy that a configuration asks for."""

import logging
from collections.abc import Callable
from random import Random

from bookie.client.config import ClientConfig
from bookie.client.contracts import Placement
from bookie.client.features import Features
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
) -> Placement:
    """Nobody is known yet: `bookies_changed` comes first. ConfigurationError.

    `clock`: the event loop's, in seconds. `resolver`: instead of the configuration's; it is asked here where this
    client stands, which may wait. `hosts`: the host of a bookie id.
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
    """As upstream does it: without one all bookies stand in one place, unless that cannot be."""
    needed = config.racks_enforced or config.placement_policy == "zone"
    try:
        resolver = resolver_for(config)
    except ConfigurationError as error:
        if needed:
            raise
        log.warning("all bookies are taken to stand in one place: %s", error)
        return None
    if resolver is None and needed:
        raise ConfigurationError(
            "networkTopologyScriptFileName is not set: set it, or reppDnsResolverClass, for racks to be enforced"
        )
    return resolver
