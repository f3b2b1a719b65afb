"""Settings of a client: values that are one of a few, and lists of names."""

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
    """Upper or lower case; a name that begins another one is not taken for it."""
    assert ClientConfig.of({"digestType": given}).admin_digest_type == means


@pytest.mark.parametrize("given", ["crc32x", "MACHINE", "crc", "", "a.b.CRC32"])
def test_a_digest_that_there_is_not(given: str) -> None:
    """The error has the choices."""
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
    """As the configuration of a Java client has it."""
    assert ClientConfig.of({"ensemblePlacementPolicy": given}).placement_policy == means


@pytest.mark.parametrize("given", ["racks", "org.example.RackyPolicy", "RackawareEnsemblePlacementPolicyV2"])
def test_a_policy_that_there_is_not(given: str) -> None:
    """Another class is not taken for one of ours because it begins alike."""
    with pytest.raises(ConfigurationError, match=r"ensemblePlacementPolicy=.*: it must be one of default, rack"):
        ClientConfig.of({"ensemblePlacementPolicy": given})


@pytest.mark.parametrize(("given", "on"), [("", set()), ("a", {"a"}), (" a , b,", {"a", "b"}), (",", set())])
def test_features_that_are_on(given: str, on: set[str]) -> None:
    """Without any, none is on; not the one without a name either."""
    features = Features.named(given)
    assert {name for name in ("", "a", "b", "c") if features.on(name)} == on


def test_where_a_feature_is_on() -> None:
    """Each region for which it was switched, whatever else is on."""
    features = Features.named("eu.closed,us.west.closed,closed,eu.closedx,eu.open")
    features.switch("asia.closed", on=True)
    features.switch("eu.closed", on=False)
    assert features.scopes("closed") == {"us.west", "asia"}
