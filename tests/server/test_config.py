"""From file and environment to settings: defaults, overrides, old names, and every refusal in full."""

import dataclasses
import logging
import re
from pathlib import Path
from typing import Any

import pytest

from bookie.client.config import MS, ClientConfig
from bookie.client.replication.service import split
from bookie.errors import StartRefused
from bookie.server.configuration import loader
from bookie.server.configuration.client_keys import APPLICATIONS
from bookie.server.configuration.errors import ConfigError
from bookie.server.configuration.foreign_keys import IGNORED, LATER, REFUSED
from bookie.server.configuration.key import Key
from bookie.server.configuration.keys import KEYS
from bookie.server.configuration.memory import allowed_bytes
from bookie.server.configuration.reference import BEGIN, END, render
from bookie.server.configuration.settings import cores
from bookie.storage.settings import MIB, READ_THREADS

ROOT = Path(__file__).parents[2]
BASE = "journalDirectories=/j\nledgerDirectories=/l\nmetadataServiceUri=lmdb:///m\n"


DERIVED = {"io_threads", "index_directories", "read_cache_bytes"}


def load(tmp_path: Path, text: str = "", environment: dict[str, str] | None = None, base: str = BASE) -> loader.Loaded:
    file = tmp_path / "bk.conf"
    file.write_text(base + text)
    return loader.load(file, environment or {})


def test_defaults_are_those_of_the_dataclasses(tmp_path: Path) -> None:
    """The defaults of the table and of the dataclasses agree, so settings that code builds by itself are the same."""
    settings = load(tmp_path).settings
    for part, kind in loader.PARTS.items():
        loaded = getattr(settings, part)
        for field in dataclasses.fields(kind):
            if field.default is not dataclasses.MISSING and field.name not in DERIVED:
                assert (getattr(loaded, field.name) or None) == (field.default or None), f"{part}.{field.name}"
    assert settings.network.io_threads == cores()
    assert settings.storage.index_directories == settings.storage.ledger_directories


@pytest.mark.parametrize(("limit", "mib"), [("memoryLimitMb=4099", 1024), ("memoryLimitMb=5", 2), ("", None)])
def test_the_read_cache_is_a_quarter_of_the_memory(tmp_path: Path, limit: str, mib: int | None) -> None:
    """Without a size of its own it is a quarter of what all budgets may have, in whole MiB and at least two."""
    given = load(tmp_path, f"dbStorage_readAheadCacheMaxSizeMb=48\n{limit}\n").settings.storage
    assert given.read_cache_bytes == 48 * MIB
    chosen = load(tmp_path, f"{limit}\n").settings.storage.read_cache_bytes
    assert chosen == (allowed_bytes() // 4 // MIB if mib is None else mib) * MIB


def test_every_field_has_a_key_or_is_derived() -> None:
    """Users can set every setting."""
    reachable = {place for key in KEYS.values() for place in key.field.split()}
    every = {f"{part}.{field.name}" for part, kind in loader.PARTS.items() for field in dataclasses.fields(kind)}
    assert every - reachable == {
        "journal.buffer_bytes", "network.descriptors_left", "network.host", "recovery.enabled", "recovery.keys",
    }  # fmt: skip
    assert reachable <= every


def test_docs_list_every_key() -> None:
    """docs/configuration.md has the table that the code prints."""
    text = (ROOT / "docs/configuration.md").read_text()
    written = text.partition(BEGIN)[2].partition(END)[0]
    assert written.strip() == render().strip()


def test_the_groups_of_keys_do_not_overlap() -> None:
    """A key is either a setting, refused, without effect, or ignored."""
    ignored = " ".join(IGNORED.values()).split()
    groups = [set(KEYS), set(REFUSED), set(LATER), set(ignored)]
    assert len(ignored) == len(groups[-1])
    assert len(set().union(*groups)) == sum(map(len, groups))


def test_keys_of_apache_bookkeeper_are_known() -> None:
    """Each key of its configuration classes and its sample file sets something, is refused, or has a reason."""
    ignored = " ".join(IGNORED.values()).split()
    known = {*KEYS, *REFUSED, *LATER, *ignored} | {key.old for key in KEYS.values()}
    assert not set((ROOT / "tests/server/apache_keys.txt").read_text().split()) - known


def test_the_client_of_a_bookie_gets_every_key(tmp_path: Path) -> None:
    """Each key of the client reaches auto-recovery from the file of a bookie, or is named with the reason why not."""
    reasons = set(" ".join(APPLICATIONS.values()).split())
    wanted, lines = {}, ["tlsCertificatePath=/cert"]
    for field in dataclasses.fields(ClientConfig):
        name, scale = field.metadata["key"], field.metadata["scale"]
        if name in reasons:
            continue
        wanted[field.name], text = other_value(field, KEYS.get(name))
        if name == "tlsCertificatePath":
            wanted[field.name] = "/cert"
            continue
        assert isinstance(wanted[field.name], bool | str) or scale in (1, MS)
        lines.append(f"{'clientKeyStore' if name == 'tlsKeyStore' else name}={text}")
    config, _ = split(load(tmp_path, "\n".join(lines)).settings.recovery.keys)
    assert {name: getattr(config, name) for name in wanted} == wanted
    defaults, _ = split(load(tmp_path).settings.recovery.keys)
    assert defaults == ClientConfig()


def other_value(field: "dataclasses.Field[Any]", key: Key | None) -> tuple[Any, str]:
    """Return a value that is not the default, in the unit of the field, and its text in the unit of the key."""
    default: Any = field.default
    choices = field.metadata["choices"]
    if isinstance(default, bool):
        return not default, str(not default).lower()
    if isinstance(default, str):
        value = choices[-1] if choices else f"/{field.name}"
        return value, value
    if key is not None and key.kind is float and key.high < 2**31 - 1:
        return key.high / 2, f"{key.high / 2:g}"
    given = round(default / field.metadata["scale"]) + (1 if default < 2**31 - 1 else -1)
    return (type(default)(given) * field.metadata["scale"] if isinstance(default, float) else given), str(given)


def test_the_key_of_the_client_needs_a_certificate(tmp_path: Path) -> None:
    """A key alone identifies nobody."""
    with pytest.raises(ConfigError, match=r"clientKeyStore=/key .*set tlsCertificatePath"):
        load(tmp_path, "clientKeyStore=/key")


def test_passwords_are_not_logged(tmp_path: Path) -> None:
    """The password of ledgers is masked where settings are shown, and reaches the client."""
    loaded = load(tmp_path, "passwd=sesame")
    assert "sesame" not in str(loaded.given) + str(loaded.settings.texts)
    assert loaded.settings.recovery.keys["passwd"] == "sesame"


def test_units_and_lists(tmp_path: Path) -> None:
    """Megabytes become bytes, and lists become absolute paths."""
    settings = load(tmp_path, "journalMaxSizeMB=100\nledgerDirectories=/a, /b\nindexDirectories=/x,/y").settings
    assert settings.journal.file_bytes_max == 100 * MIB
    assert settings.storage.ledger_directories == (Path("/a"), Path("/b"))


def test_values_by_which_apache_bookkeeper_means_default_or_never(tmp_path: Path) -> None:
    """Values of Apache BookKeeper's documentation beyond what we would recommend are accepted as well."""
    never = 2**63 - 1
    text = f"numReadWorkerThreads=0\ndiskCheckInterval={2**31 - 1}\nminUsableSizeForEntryLogCreation={never}"
    settings = load(tmp_path, text).settings
    assert settings.storage.read_threads == READ_THREADS
    assert settings.disks.check_interval_ms == 2**31 - 1
    assert settings.disks.recovery_room_bytes == settings.disks.log_room_bytes == never


def test_the_environment_overrides_the_file(tmp_path: Path) -> None:
    """BK_key overrides the file, and an error names it as the origin."""
    loaded = load(tmp_path, "bookiePort=1\n", {"BK_bookiePort": "2", "HOME": "/"})
    assert loaded.settings.network.port == 2
    with pytest.raises(ConfigError, match="environment variable BK_bookiePort"):
        load(tmp_path, "bookiePort=1\n", {"BK_bookiePort": "x"})


def test_the_environment_alone_is_enough() -> None:
    """The environment can set everything without a file."""
    environment = {"BK_journalDirectories": "/j", "BK_ledgerDirectories": "/l", "BK_zkServers": "a:1,b:2"}
    settings = loader.load(None, environment).settings
    assert settings.metadata.service_uri == "zk+null://a:1;b:2/ledgers"


def test_old_names_work_and_lose_to_new_ones(tmp_path: Path) -> None:
    """journalDirectory means journalDirectories; if both are set, the current name counts."""
    base = "ledgerDirectories=/l\nmetadataServiceUri=lmdb:///m\njournalDirectory=/old\n"
    assert load(tmp_path, base=base).settings.journal.directories == (Path("/old"),)
    assert load(tmp_path, "journalDirectories=/new", base=base).settings.journal.directories == (Path("/new"),)


def test_interpolation(tmp_path: Path) -> None:
    """${env:X} in values is replaced."""
    assert load(tmp_path, "bookieId=${env:ME}-1", {"ME": "bk"}).settings.identity.bookie_id == "bk-1"
    with pytest.raises(ConfigError, match=r"bookieId=.*line 4.*ME is not set"):
        load(tmp_path, "bookieId=${env:ME}")


@pytest.mark.parametrize(
    ("line", "level", "says"),
    [
        (
            "jurnalSyncData=false",
            logging.WARNING,
            "unknown key jurnalSyncData .*most similar known key is journalSyncData",
        ),
        ("myPlugin.colour=red", logging.WARNING, r"unknown key myPlugin.colour \(bk.conf, line 4\) is ignored$"),
        ("localScrubInterval=1", logging.WARNING, "localScrubInterval .*has no effect"),
        ("dbStorage_rocksDB_blockSize=1", logging.DEBUG, "has no meaning here.*the index is LMDB"),
        ("useV2WireProtocol=true", logging.DEBUG, "no meaning here.*auto-recovery needs requests"),
        ("adminHost=192.0.2.1\nadminInsecureAllowed=true", logging.WARNING, "every client that reaches that port"),
        ("bookiePort=1\nbookiePort=2", logging.WARNING, "bookiePort is set again in bk.conf, line 5"),
    ],
)
def test_notices(tmp_path: Path, line: str, level: int, says: str) -> None:
    """Harmless oddities are reported at their level."""
    (notice,) = load(tmp_path, line).notices
    assert notice.level == level
    assert re.search(says, notice.text)


REFUSALS = [
    ("bookiePort=99999", "bookiePort", "from 0 to 65535"),
    ("bookiePort=x", "bookiePort", "it is not a whole number"),
    ("bookiePort=3_181", "bookiePort", "it is not a whole number"),
    ("bookiePort=", "bookiePort", "it is not a whole number"),
    ("bookiePort=0", "bookiePort", "allowEphemeralPorts"),
    ("allowLoopback=maybe", "allowLoopback", "true or false"),
    ("journalAlignmentSize=1000", "journalAlignmentSize", "multiple of 512"),
    ("journalAlignmentSize=256", "journalAlignmentSize", "from 512"),
    ("diskUsageThreshold=1.5", "diskUsageThreshold", "0.999"),
    ("diskUsageThreshold=nan", "diskUsageThreshold", "it is not a number"),
    ("diskUsageWarnThreshold=0.99", "diskUsageWarnThreshold", "raise diskUsageThreshold"),
    ("diskUsageLwmThreshold=0.99", "diskUsageLwmThreshold", "raise diskUsageThreshold"),
    ("adminHost=192.0.2.1", "adminHost", "adminTokensFile"),
    ("adminTlsCertificatePath=/c", "adminTlsCertificatePath", "adminTlsKeyPath"),
    ("adminTlsClientCaPath=/c", "adminTlsClientCaPath", "adminTlsCertificatePath"),
    ("adminTlsSubjects=read:a", "adminTlsSubjects", "adminTlsClientCaPath"),
    (
        "adminTlsClientCaPath=/a\nadminTlsCertificatePath=/c\nadminTlsKeyPath=/k",
        "adminTlsClientCaPath",
        "no client has any rights",
    ),
    ("logFormat=xml", "logFormat", "keyvalue or json"),
    ("ledgerDirectories=/a,/a", "ledgerDirectories", "once"),
    ("indexDirectories=/a,/b", "indexDirectories", "as many"),
    ("ledgerDirectories=" + ",".join(f"/l{n}" for n in range(65)), "ledgerDirectories", "list at most 64"),
    ("journalDirectories=" + ",".join(f"/j{n}" for n in range(65)), "journalDirectories", "list at most 64"),
    ("serverNumIOThreads=65", "serverNumIOThreads", "from 0 to 64"),
    (
        "serverNumIOThreads=60\ntlsIOThreads=5\ntlsProviderFactoryClass=org.apache.bookkeeper.tls.TLSContextFactory",
        "serverNumIOThreads",
        "65 I/O loops",
    ),
    ("numReadWorkerThreads=257", "numReadWorkerThreads", "from 0 to 256"),
    ("journalMaxBackups=1001", "journalMaxBackups", "from 0 to 1000"),
    ("journalDirectories=", "journalDirectories", "must be set"),
    ("metadataServiceUri=", "metadataServiceUri", "lmdb:///directory"),
    ("journalMaxMemorySizeMb=4", "journalMaxMemorySizeMb", "raise it to 11"),
    ("dbStorage_writeCacheMaxSizeMb=4", "dbStorage_writeCacheMaxSizeMb", "raise it to 11"),
    ("journalMaxMemorySizeMb=10", "journalMaxMemorySizeMb", "raise it to 11"),
    ("dbStorage_writeCacheMaxSizeMb=10", "dbStorage_writeCacheMaxSizeMb", "raise it to 11"),
    ("journalMaxBacklogMB=1000", "journalMaxBacklogMB", "raise it to 1536"),
    ("journalMaxMemorySizeMb=4096", "journalMaxMemorySizeMb", "lower it to 2048"),
    ("serverMaxInputMemorySizeMb=8", "serverMaxInputMemorySizeMb", "raise it to 10"),
    ("serverMaxOutputMemorySizeMb=8", "serverMaxOutputMemorySizeMb", "raise it to 10"),
    ("dbStorage_readAheadCacheMaxSizeMb=1", "dbStorage_readAheadCacheMaxSizeMb", "raise it to 2 or more, or 0"),
    ("maxBatchReadSize=6000000", "maxBatchReadSize", "nettyMaxFrameSizeBytes"),
    ("journalPreAllocSizeMB=64\njournalMaxSizeMB=16", "journalPreAllocSizeMB", "journalMaxSizeMB"),
    ("serverWriteBufferLowWaterMark=9000000", "serverWriteBufferLowWaterMark", "HighWaterMark"),
    ("tlsProviderFactoryClass=org.Foo", "tlsProviderFactoryClass", "remove it"),
    ("tlsRequired=true", "tlsRequired", "set tlsProviderFactoryClass="),
    ("bookieAuthProviderFactoryClass=certificate", "bookieAuthProviderFactoryClass", "tlsClientAuthentication=true"),
    ("minorCompactionThreshold=0.9", "minorCompactionThreshold", "raise majorCompactionThreshold"),
    ("minorCompactionInterval=90000", "minorCompactionInterval", "raise majorCompactionInterval"),
    ("gcWaitTime=4000000", "minorCompactionInterval", "lower gcWaitTime"),
    ("minorCompactionThreshold=0\ngcWaitTime=90000000", "majorCompactionInterval", "lower gcWaitTime"),
    ("majorCompactionThreshold=1.1", "majorCompactionThreshold", "to 1"),
    ("journalFormatVersionToWrite=5", "journalFormatVersionToWrite", "set it to 6"),
]


@pytest.mark.parametrize(
    ("text", "key", "says"), REFUSALS, ids=[text.replace("\n", ",")[:80] for text, _, _ in REFUSALS]
)
def test_refusals(tmp_path: Path, text: str, key: str, says: str) -> None:
    """A wrong value gives key, value, origin, reason and remedy on one line."""
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    error, line = caught.value, str(caught.value)
    assert error.key == key
    assert error.exit_code == 1
    assert line.startswith(f"{key}={error.value}")
    assert says in line
    assert "\n" not in line
    assert error.reason
    assert error.remedy


def test_the_refused_keys_accept_their_default(tmp_path: Path) -> None:
    """A file that states the harmless value is accepted."""
    load(tmp_path, "tlsProviderFactoryClass=\nallowStorageExpansion=false\njournalFormatVersionToWrite=6")


def test_unreadable_files(tmp_path: Path) -> None:
    """A missing file, a directory, and bytes that are not text give one line with the name of the file."""
    binary = tmp_path / "binary"
    binary.write_bytes(b"a=\xff\xfe")
    broken = tmp_path / "broken"
    broken.write_text("a=\\u12")
    for path in (tmp_path / "absent", tmp_path, binary, broken):
        with pytest.raises(StartRefused, match=str(path)):
            loader.load(path, {})
