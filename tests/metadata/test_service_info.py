"""What a bookie publishes, byte for byte like Java bookies, and the choice of its id."""

import re
import socket
from typing import Any

import pytest

from bookie.errors import ConfigurationError, MetadataSerializationError
from bookie.metadata.bookies.identity import (
    ANY_ADDRESS,
    IdentitySettings,
    advertised_host,
    bind_host,
    candidate_ids,
    check_bookie_id,
    choose_bookie_id,
)
from bookie.metadata.bookies.reachable import doubt_about_address
from bookie.metadata.bookies.service_info import (
    OUR_PROPERTIES,
    BookieServiceInfo,
    bookie_endpoint,
    http_endpoint,
    parse_service_info,
)

BOOKIE_HEX = "32 21 0a 06 62 6f 6f 6b 69 65 10 ed 18 1a 08 31 30 2e 30 2e 30 2e 35 22 0a 62 6f 6f 6b 69 65 2d 72 70 63"
HTTP_HEX = "32 1e 0a 0a 68 74 74 70 73 65 72 76 65 72 10 90 3f 1a 07 30 2e 30 2e 30 2e 30 22 04 68 74 74 70"


def test_the_worked_examples() -> None:
    """The client port alone, and with the HTTP port after it, are as published by Java."""
    plain = BookieServiceInfo((bookie_endpoint("10.0.0.5", 3181),))
    assert plain.to_bytes() == bytes.fromhex(BOOKIE_HEX)
    both = BookieServiceInfo((*plain.endpoints, http_endpoint("0.0.0.0", 8080)))  # noqa: S104 - as Java publishes it
    assert both.to_bytes() == bytes.fromhex(BOOKIE_HEX + HTTP_HEX)
    found = parse_service_info("x", both.to_bytes())
    assert found == both
    assert found.client_endpoint() == plain.endpoints[0]


def test_properties_and_tls() -> None:
    """Properties are a map, TLS is an extension of the endpoint, and unknown fields are skipped."""
    info = BookieServiceInfo((bookie_endpoint("h", 1, tls=True),), {"b": "2", "a": "1"})
    assert parse_service_info("x", info.to_bytes() + bytes.fromhex("a2 06 01 78")) == info
    assert info.endpoints[0].extensions == ("tls",)


@pytest.mark.parametrize(
    ("properties", "extensions"),
    [
        ({}, set()),
        ({"pybk.v3.ext": ""}, set()),
        ({"pybk.v3.ext": "batchRead, other"}, {"batchRead", "other"}),
        (OUR_PROPERTIES, {"batchRead", "writeClose", "bookieLoad"}),
    ],
)
def test_extensions(properties: dict[str, str], extensions: set[str]) -> None:
    """Extensions beyond Apache BookKeeper are in a property that other clients ignore."""
    info = BookieServiceInfo((bookie_endpoint("h", 1),), properties)
    assert parse_service_info("x", info.to_bytes()).v3_extensions() == extensions


def test_a_legacy_bookie_is_its_id() -> None:
    """With empty data, host and port come from the id; an id without a port is an error."""
    assert parse_service_info("bk1:3181", b"").client_endpoint() == bookie_endpoint("bk1", 3181)
    with pytest.raises(MetadataSerializationError, match="bookie-7 publishes no endpoint"):
        parse_service_info("bookie-7", b"")
    with pytest.raises(MetadataSerializationError, match="service info of bookie x"):
        parse_service_info("x", b"\xff\xff")


@pytest.mark.parametrize("bookie_id", ["a:3181", "bookie_1", "Host-1.example:1", "[::1]:3181", "a=b"])
def test_ids_that_are_taken(bookie_id: str) -> None:
    """Letters, digits, dash, dot, and everything from the colon to the underscore are accepted."""
    assert check_bookie_id(bookie_id) == bookie_id


@pytest.mark.parametrize("bookie_id", ["", "a/b", "a b", "readonly", "ReadOnly", "a\n", "ä", "a,b"])
def test_ids_that_are_refused(bookie_id: str) -> None:
    """Ids that cannot be the name of a node, or already are one, are refused."""
    with pytest.raises(ConfigurationError, match="bookie id"):
        check_bookie_id(bookie_id)


def test_the_id_is_chosen_in_order() -> None:
    """The id comes from bookieId, then the advertised address, then the interface; loopback only if it is allowed."""
    everything = IdentitySettings(
        port=3181, bookie_id="me", advertised_address="10.0.0.5", listening_interface="lo", allow_loopback=True
    )
    assert choose_bookie_id(everything) == "me"
    assert candidate_ids(everything) == ("me",)
    assert advertised_host(everything) == "10.0.0.5"
    assert bind_host(everything) == "127.0.0.1"
    advertised = IdentitySettings(port=3181, advertised_address="10.0.0.5", listening_interface="lo")
    assert choose_bookie_id(advertised) == "10.0.0.5:3181"
    assert candidate_ids(advertised)[:2] == ("10.0.0.5:3181", "127.0.0.1:3181")
    loopback = IdentitySettings(port=3181, listening_interface="lo")
    with pytest.raises(ConfigurationError, match="allowLoopback=true"):
        choose_bookie_id(loopback)
    allowed = IdentitySettings(port=3181, listening_interface="lo", allow_loopback=True)
    assert choose_bookie_id(allowed) == "127.0.0.1:3181"


def test_only_who_is_asked_to_serves_the_network() -> None:
    """Without settings it listens on loopback, if allowed; with an address or name of the host, on all addresses."""
    silent = IdentitySettings(port=3181, allow_loopback=True)
    assert (bind_host(silent), choose_bookie_id(silent)) == ("127.0.0.1", "127.0.0.1:3181")
    with pytest.raises(ConfigurationError, match="set advertisedAddress or listeningInterface"):
        advertised_host(IdentitySettings(port=3181, bookie_id="me"))
    for own in ("127.0.0.1", "127.8.8.8", "localhost"):
        assert bind_host(IdentitySettings(port=3181, advertised_address=own)) == "127.0.0.1"
    for other in ("10.0.0.5", "bk1.example"):
        assert bind_host(IdentitySettings(port=3181, advertised_address=other)) == ANY_ADDRESS
    assert bind_host(IdentitySettings(port=3181, advertised_address="bk1", listening_interface="lo")) == "127.0.0.1"


@pytest.mark.parametrize("host", ["10.0.0.5", "fd00::5", "bk1", "bk_1.example", "bk-1.example.", "1a.2b", "a" * 63])
def test_hosts_that_are_announced(host: str) -> None:
    """Addresses and names."""
    assert advertised_host(IdentitySettings(port=3181, advertised_address=host)) == host


@pytest.mark.parametrize(
    "host", ["bk1:3181", "grpc://bk1", "10.0.0.256", "10.0.0", "[::1]", "bk 1", "a..b", ".", "bäk", "a" * 64, "a\n"]
)
def test_hosts_that_are_refused(host: str) -> None:
    """Clients could never connect to them."""
    for settings in (
        IdentitySettings(port=3181, advertised_address=host),
        IdentitySettings(port=3181, advertised_address=host, bookie_id="me"),
    ):
        with pytest.raises(ConfigurationError, match="neither a host name nor an IP address; give one of them"):
            advertised_host(settings)


@pytest.mark.parametrize(
    ("host", "facts", "doubt"),
    [
        ("bk1.invalid", {}, "finds no address for it .*; correct it, or enter the name in DNS"),
        ("0.0.0.0", {}, "no client can connect to it; set an address"),  # noqa: S104
        ("localhost", {}, "no other machine can reach 127.0.0.1.*allowLoopback=true"),
        ("10.0.0.5", {"listening_interface": "lo"}, "but the bookie listens only at 127.0.0.1; unset listeningInt"),
        ("localhost", {"allow_loopback": True}, ""),
        ("127.0.0.1", {"allow_loopback": True, "listening_interface": "lo"}, ""),
        ("10.0.0.5", {}, ""),
        (None, {}, ""),
    ],
)
def test_addresses_that_clients_may_not_reach(host: str | None, facts: dict[str, Any], doubt: str) -> None:
    """A warning names the key, the value and a remedy; what may be right gives none."""
    settings = IdentitySettings(port=3181, advertised_address=host, **facts)
    found = doubt_about_address(settings, bind_host(settings))
    assert re.fullmatch(f"advertisedAddress={host}: .*{doubt}.*" if doubt else "", found)


def test_a_host_name_can_be_the_id() -> None:
    """The resolver's name of the address is used, whole or up to the first dot."""
    name = socket.getfqdn("127.0.0.1")
    settings = IdentitySettings(port=1, listening_interface="lo", allow_loopback=True, use_host_name=True)
    assert choose_bookie_id(settings) == f"{name}:1"
    short = IdentitySettings(
        port=1, listening_interface="lo", allow_loopback=True, use_host_name=True, use_short_host_name=True
    )
    assert choose_bookie_id(short) == f"{name.partition('.')[0]}:1"


def test_an_unknown_interface_is_named() -> None:
    """The error lists the existing interfaces."""
    with pytest.raises(ConfigurationError, match=r"listeningInterface 'nope0' .* has .*lo"):
        bind_host(IdentitySettings(port=1, listening_interface="nope0"))
