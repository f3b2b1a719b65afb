"""What can be wrong with a configuration and needs no disk to be found, besides what reading it finds. Main thread."""

from itertools import combinations

from bookie.server.configuration.errors import ConfigError
from bookie.server.control import Control, discover, discover_services
from bookie.server.process.ports import check_free

__all__ = ["check_parts", "check_ports", "Port"]

ANY = ("", "0.0.0.0", "::")  # noqa: S104 - compared, not bound
Port = tuple[str, str, int]
"""The configuration key, the address and the number of a port; 0 lets the system choose, and less means none."""


def check_ports(ports: list[Port], *, free: bool) -> None:
    """Check that no two parts have the same port and, with `free`, that no other process has one.

    Raises ConfigError.
    """
    for (one, host, port), (key, other, number) in combinations(ports, 2):
        if port == number > 0 and (host == other or host in ANY or other in ANY):
            raise ConfigError(key, str(number), f"{one} has the same port", "set another port")
    if free:
        for key, host, port in ports:
            check_free(key, host, port)


def check_parts(control: Control) -> None:
    """Check the files of the planes, such as tokens and certificates, and the settings of services.

    Raises ConfigurationError.
    """
    for _, factory in discover():
        if plane := factory(control):
            try:
                plane.check()
            finally:
                plane.stop(0)
    for _, make in discover_services():
        if service := make(control):
            service.stop()
