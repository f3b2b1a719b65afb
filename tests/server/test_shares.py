"""Descriptors are divided among the ports: as configured if they suffice, otherwise an eighth for each plane."""

import resource
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bookie.server.configuration.loader import load
from bookie.server.configuration.settings import Settings
from bookie.server.process.shares import shared_out


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings with every port."""
    conf = tmp_path / "bk.conf"
    conf.write_text(
        "metadataServiceUri=lmdb:///x\njournalDirectories=/j\nledgerDirectories=/l\nhttpServerEnabled=true\n"
    )
    return load(conf, {}).settings


@pytest.fixture
def allow() -> Iterator[Callable[[int], None]]:
    """Sets the number of descriptors of this process while the test runs."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield lambda most: resource.setrlimit(resource.RLIMIT_NOFILE, (most, before[1]))
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_what_fits_is_given(settings: Settings, allow: Callable[[int], None]) -> None:
    """Ten thousand client connections, and all of the planes, are possible."""
    allow(16_000)
    found = shared_out(settings)
    assert (found.admin, found.http) == (settings.admin, settings.http)
    assert found.network.descriptors_left == 320 + 3 * 1000 + 256


def test_few_descriptors_are_shared_out(
    settings: Settings, allow: Callable[[int], None], caplog: pytest.LogCaptureFixture
) -> None:
    """The planes get an eighth each, an address its part of that, and a disabled port nothing; the log says so."""
    allow(1024)
    found = shared_out(settings)
    assert (found.admin.connections_max, found.admin.connections_per_address_max) == (42, 31)
    assert (found.http.connections_max, found.http.connections_per_address_max) == (128, 96)
    assert found.network.descriptors_left == 320 + 3 * 42 + 128
    assert [record.__dict__["port"] for record in caplog.records] == ["admin", "http"]
    alone = replace(settings, http=replace(settings.http, enabled=False))
    assert shared_out(alone).network.descriptors_left == 320 + 3 * 42
