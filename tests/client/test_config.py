"""Settings of the client: values from a fixed set, and lists of names."""

import pytest

from bookie.client.config import ClientConfig
from bookie.client.features import Features
from bookie.errors import ConfigurationError


@pytest.mark.parametrize(
    ("given", "means"),
    [
        ("CRC32C", "CRC32C"),
        ("crc32c", "CRC32C"),
        ("Crc32c", "CRC32C"),
        ("crc32", "CRC32"),
        ("mac", "MAC"),
        ("dummy", "DUMMY"),
    ],
)
def test_a_digest_by_its_name(given: str, means: str) -> None:
    """A digest type is matched in any case; a name that is only a prefix of another one is not."""
    assert ClientConfig.of({"digestType": given}).admin_digest_type == means


@pytest.mark.parametrize("given", ["crc32x", "MACHINE", "crc", "", "a.b.CRC32"])
def test_a_digest_that_there_is_not(given: str) -> None:
    """The error lists the choices."""
    with pytest.raises(ConfigurationError, match=r"digestType=.*: it must be one of CRC32, MAC, CRC32C, DUMMY"):
        ClientConfig.of({"digestType": given})


@pytest.mark.parametrize(
    ("given", "means"),
    [
        ("rack", "rack"),
        ("Region", "region"),
        ("org.apache.bookkeeper.client.RackawareEnsemblePlacementPolicy", "rack"),
        ("org.apache.bookkeeper.client.RegionAwareEnsemblePlacementPolicy", "region"),
        ("org.apache.bookkeeper.client.ZoneawareEnsemblePlacementPolicy", "zone"),
        ("org.apache.bookkeeper.client.DefaultEnsemblePlacementPolicy", "default"),
    ],
)
def test_a_policy_by_its_name_or_javas_class(given: str, means: str) -> None:
    """A policy is accepted by its name or by Java's class name."""
    assert ClientConfig.of({"ensemblePlacementPolicy": given}).placement_policy == means


@pytest.mark.parametrize("given", ["racks", "org.example.RackyPolicy", "RackawareEnsemblePlacementPolicyV2"])
def test_a_policy_that_there_is_not(given: str) -> None:
    """A class whose name only begins like one of ours is refused."""
    with pytest.raises(ConfigurationError, match=r"ensemblePlacementPolicy=.*: it must be one of default, rack"):
        ClientConfig.of({"ensemblePlacementPolicy": given})


@pytest.mark.parametrize(("given", "on"), [("", set()), ("a", {"a"}), (" a , b,", {"a", "b"}), (",", set())])
def test_features_that_are_on(given: str, on: set[str]) -> None:
    """Without names no feature is on, not even the one with an empty name."""
    features = Features.named(given)
    assert {name for name in ("", "a", "b", "c") if features.on(name)} == on


def test_where_a_feature_is_on() -> None:
    """The regions in which a feature is on are returned, whatever else is on."""
    features = Features.named("eu.closed,us.west.closed,closed,eu.closedx,eu.open")
    features.switch("asia.closed", on=True)
    features.switch("eu.closed", on=False)
    assert features.scopes("closed") == {"us.west", "asia"}
