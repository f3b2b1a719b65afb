"""The network locations of bookies, by a real script and by a resolver."""

import os
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from bookie.client.config import ClientConfig
from bookie.client.placement.factory import placement_for
from bookie.client.placement.locations import Locations, host_of
from bookie.client.placement.rack import RackPlacement
from bookie.client.placement.resolver import ScriptResolver
from bookie.errors import ConfigurationError
from tests.client.placement.clusters import Clock, Table


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A script that prints /rN for an address that ends in N, records its calls, and can be told to fail."""
    path = tmp_path / "topology"
    path.write_text(
        '#!/bin/sh\ncd "$(dirname "$0")"\necho "$@" >> calls\n[ -f fail ] && exit 3\n'
        '[ -f mute ] && exit 0\nfor host in "$@"; do echo "/r${host##*.}"; done\n'
    )
    path.chmod(0o700)
    return path


def calls(script: Path) -> list[str]:
    """Return the arguments of each call."""
    return (script.parent / "calls").read_text().splitlines()


def test_a_script_is_tried_and_called_with_so_many_hosts(script: Path) -> None:
    """A script is called once without arguments, then with `networkTopologyScriptNumberArgs` hosts at a time."""
    resolver = ScriptResolver(str(script), 2)
    assert resolver.resolve(["10.0.0.1", "10.0.0.2", "10.0.0.3"]) == ["/r1", "/r2", "/r3"]
    assert calls(script) == ["", "10.0.0.1 10.0.0.2", "10.0.0.3"]


@pytest.mark.parametrize("how", ["fail", "mute"])
def test_a_script_that_fails_or_prints_too_little_resolves_nothing(script: Path, how: str) -> None:
    """The default location is used, and the script is called again the next time."""
    locations = Locations(ScriptResolver(str(script), 100), "/default-rack")
    (script.parent / how).touch()
    locations.learn(["10.0.0.1:3181"])
    assert locations.of("10.0.0.1:3181") == "/default-rack"
    (script.parent / how).unlink()
    locations.learn(["10.0.0.1:3181"])
    assert locations.of("10.0.0.1:3181") == "/r1"


def test_answers_are_kept(script: Path) -> None:
    """A host is looked up once for all its bookies."""
    locations = Locations(ScriptResolver(str(script), 100), "/default-rack")
    locations.learn(["10.0.0.1:3181", "10.0.0.1:3182"])
    locations.learn(["10.0.0.1:3181", "10.0.0.2:3181"])
    assert [locations.of(f"10.0.0.{n}:3181") for n in (1, 2, 3)] == ["/r1", "/r2", "/default-rack"]
    assert calls(script) == ["", "10.0.0.1", "10.0.0.2"]


@pytest.mark.parametrize(
    ("bookie", "host"),
    [("h1:3181", "h1"), ("[::1]:3181", "::1"), ("an-id", None), ("an-id:x", None), (":3181", "")],
)
def test_the_host_of_a_bookie(bookie: str, host: str | None) -> None:
    """An id that is no address has no host; the metadata of the bookie have it."""
    assert host_of(bookie) == host


def test_what_is_no_path_is_not_resolved() -> None:
    """A location starts with a slash and has no empty component; a slash at its end is ignored."""
    locations = Locations(
        Table({"a": "/r1/", "b": "rack", "c": "/r//x", "d": "/", "e": None, "f": "/g/r"}), "/default", str
    )
    locations.learn("abcdef")
    assert [locations.of(bookie) for bookie in "abcdef"] == [
        "/r1",
        "/default",
        "/default",
        "/default",
        "/default",
        "/g/r",
    ]


def test_the_configured_script_is_used(script: Path) -> None:
    """Bookies have the locations that the configured script prints."""
    config = ClientConfig(topology_script=str(script), local_node_ignored=True)
    placement = placement_for(config, Random(1), Clock())
    assert isinstance(placement, RackPlacement)
    placement.bookies_changed(frozenset({"10.0.0.1:1", "10.0.1.1:1", "10.0.0.2:1"}), frozenset())
    for _ in range(20):
        assert "10.0.0.2:1" in placement.new_ensemble(2, 2, 2)


def test_the_client_itself_is_looked_up() -> None:
    """The client is looked up by name or by address, unless `ignoreLocalNodeInPlacementPolicy` is set."""

    class Everywhere(Table):
        def resolve(self, hosts: Sequence[str]) -> list[str | None]:
            return ["/here" for _ in hosts]

    for ignored, place in ((False, "/here"), (True, "/default-rack")):
        placement = placement_for(ClientConfig(local_node_ignored=ignored), Random(1), Clock(), resolver=Everywhere({}))
        assert isinstance(placement, RackPlacement)
        assert placement.local == place


def of_settings(config: ClientConfig) -> Table:
    """Return a resolver, for `reppDnsResolverClass` in a test."""
    return Table({"h": f"/{config.racks_min}"})


def test_a_resolver_of_the_application() -> None:
    """`module:factory` is called with the settings."""
    config = ClientConfig(resolver=f"{__name__}:of_settings", racks_min=7, local_node_ignored=True)
    placement = placement_for(config, Random(1), Clock())
    assert isinstance(placement, RackPlacement)
    placement.locations.learn(["h:1"])
    assert placement.locations.of("h:1") == "/7"


BROKEN = [
    {"topology_script": os.devnull},
    {"topology_script": "/nonexistent/script"},
    {"topology_script": "/bin/false"},
    {"resolver": "nonexistent.module:factory"},
    {"resolver": "bookie.errors"},
]


@pytest.mark.parametrize("settings", [*BROKEN, {}])
def test_without_places_everybody_stands_in_one_rack(settings: dict[str, str]) -> None:
    """Without a resolver all bookies are in one rack, as in Apache BookKeeper; with enforced racks it is an error."""
    config = ClientConfig(local_node_ignored=True, **settings)  # type: ignore[arg-type]
    placement = placement_for(config, Random(1), Clock())
    placement.bookies_changed(frozenset({"a:1", "b:1"}), frozenset())
    assert sorted(placement.new_ensemble(2, 2, 2)) == ["a:1", "b:1"]
    with pytest.raises(ConfigurationError, match=r"networkTopologyScriptFileName|reppDnsResolverClass"):
        placement_for(ClientConfig(racks_enforced=True, **settings), Random(1), Clock())  # type: ignore[arg-type]
