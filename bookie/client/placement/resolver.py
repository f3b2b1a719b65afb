"""Look up the network locations of hosts with an operator's script or an object of the application.

It may block as long as the script takes. Any thread, one call at a time.
"""

import importlib
import logging
import subprocess
from collections.abc import Sequence
from typing import Protocol

from bookie.client.config import ClientConfig
from bookie.errors import ConfigurationError

__all__ = ["Resolver", "resolver_for", "ScriptResolver"]

SCRIPT_SECONDS_MAX = 60.0

log = logging.getLogger(__name__)


class Resolver(Protocol):
    """The object that `reppDnsResolverClass=module:factory` returns when it is called with the configuration."""

    by_name: bool
    """Whether hosts are passed by name; otherwise they are passed by IP address."""

    def resolve(self, hosts: Sequence[str]) -> Sequence[str | None] | None:
        """Return the location of each host, "/rack" or "/region/rack", or None if it is unknown.

        None instead of the list means that the look-up failed.
        """
        ...


class ScriptResolver:
    """Runs a script that gets hosts as arguments and prints a location for each, like Apache BookKeeper's
    ScriptBasedMapping.
    """

    by_name = False

    def __init__(self, script: str, arguments_max: int) -> None:
        """Run the script once without arguments, to check it. Raises ConfigurationError if that fails."""
        self._script = script
        self._arguments_max = arguments_max
        try:
            self._run(())
        except (OSError, subprocess.SubprocessError) as error:
            raise ConfigurationError(
                f"networkTopologyScriptFileName={script}: without arguments it must exit with 0: {error}"
            ) from error

    def resolve(self, hosts: Sequence[str]) -> Sequence[str] | None:
        """Return a location for each host, or None if a run fails or prints another number of words."""
        words: list[str] = []
        for first in range(0, len(hosts), self._arguments_max):
            try:
                words += self._run(hosts[first : first + self._arguments_max])
            except (OSError, subprocess.SubprocessError) as error:
                log.warning("topology script failed script=%s error=%s", self._script, error)
                return None
        if len(words) != len(hosts):
            log.warning(
                "topology script printed a wrong number of locations script=%s hosts=%d printed=%d",
                self._script,
                len(hosts),
                len(words),
            )
            return None
        return words

    def _run(self, hosts: Sequence[str]) -> list[str]:
        command = [self._script, *hosts]
        done = subprocess.run(  # noqa: S603  (the operator's own script)
            command, stdout=subprocess.PIPE, text=True, errors="replace", check=True, timeout=SCRIPT_SECONDS_MAX
        )
        return done.stdout.split()


def resolver_for(config: ClientConfig) -> Resolver | None:
    """Return the resolver that the configuration names, or None. Raises ConfigurationError if it cannot be used."""
    if not config.resolver or config.resolver.endswith("ScriptBasedMapping"):
        if not config.topology_script:
            return None
        return ScriptResolver(config.topology_script, config.topology_script_arguments)
    module, _, name = config.resolver.partition(":")
    try:
        resolver: Resolver = getattr(importlib.import_module(module), name)(config)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise ConfigurationError(
            f"reppDnsResolverClass={config.resolver}: it must be module:factory, called with the settings: {error}"
        ) from error
    return resolver
