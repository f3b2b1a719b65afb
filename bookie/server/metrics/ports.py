"""Metrics of the ports of planes: their connections, and the peers that they turn away."""

from collections.abc import Iterator, Mapping

from bookie.metrics.family import Family, Kind, Sample

__all__ = ["port_doors", "REASONS"]

PORTS = ("admin", "http")
REASONS: Mapping[str, str] = {
    "connections": "too many connections",
    "connections_of_address": "too many connections from its address",
    "descriptors": "the process has no file descriptor left",
    "gave_way": "it was idle, and another connection needed its place",
    "silent": "it sent nothing in time",
    "tls_handshake": "its TLS handshake failed",
    "late": "its handshake or its request was not complete in time",
    "slow_reader": "it did not receive its response in time",
}
"""Why such a port turns a peer away: the label, and the text in the log."""


def port_doors(stats: Mapping[str, float]) -> Iterator[Family]:
    """Yield the families from `<port>_connections` and `<port>_turned_away_<reason>`; a disabled port has zeros."""
    yield Family(
        "pybookie_port_connections",
        Kind.GAUGE,
        "Open connections of the admin port and of the HTTP port.",
        tuple(Sample(stats.get(f"{port}_connections", 0), (("port", port),)) for port in PORTS),
    )
    yield Family(
        "pybookie_port_peers_turned_away_total",
        Kind.COUNTER,
        "Peers turned away at the admin port and at the HTTP port, by reason.",
        tuple(
            Sample(stats.get(f"{port}_turned_away_{reason}", 0), (("port", port), ("reason", reason)))
            for port in PORTS
            for reason in REASONS
        ),
    )
