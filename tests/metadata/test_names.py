"""Names and paths: metadataServiceUri, LAYOUT, and the paths of ledgers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookie.errors import ConfigurationError, LedgerIdOverflow, MetadataSerializationError
from bookie.metadata.uri import MetadataUri, parse_uri, uri_from_zookeeper_keys
from bookie.metadata.zookeeper.layout import Layout, layout_of_kind, parse_layout
from bookie.metadata.zookeeper.ledger_paths import FLAT, LONG, SHORT, ledger_path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "zk+hierarchical://zk1:2181;zk2:2181/ledgers",
            MetadataUri("zk", "hierarchical", ("zk1:2181", "zk2:2181"), "/ledgers"),
        ),
        ("ZK+LongHierarchical://zk1/bk/ledgers/", MetadataUri("zk", "longhierarchical", ("zk1",), "/bk/ledgers")),
        ("zk://a:1,b:2;c:3/l", MetadataUri("zk", None, ("a:1", "b:2", "c:3"), "/l")),
        ("zk+null://a:1/l", MetadataUri("zk", None, ("a:1",), "/l")),
        ("lmdb:///var/lib/bookie/metadata", MetadataUri("lmdb", None, (), "/var/lib/bookie/metadata")),
        ("grpc://127.0.0.1:3182", MetadataUri("grpc", None, ("127.0.0.1:3182",), "/")),
    ],
)
def test_a_uri_is_read(text: str, expected: MetadataUri) -> None:
    """Scheme and layout are accepted in any case, hosts with semicolons or commas, and a final slash is dropped."""
    assert parse_uri(text) == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("localhost:2181", "has no scheme"),
        ("consul://a:1/l", "scheme 'consul' is unknown"),
        ("zk:///ledgers", "names no host"),
        ("zk://a:1", "names no ledgers root"),
        ("lmdb://relative/directory", "absolute directory"),
        ("grpc://a:1/path", "is not grpc://host:port"),
        ("lmdb+flat:///d", "only zk has layouts"),
    ],
)
def test_a_wrong_uri_is_explained(text: str, why: str) -> None:
    """The error has the setting, its value, and the remedy."""
    with pytest.raises(ConfigurationError, match="metadataServiceUri") as refusal:
        parse_uri(text)
    assert why in str(refusal.value)
    assert text in str(refusal.value)


def test_the_older_keys_make_a_uri() -> None:
    """zkServers and zkLedgersRootPath become a URI."""
    assert parse_uri(uri_from_zookeeper_keys("a:1,b:2")) == MetadataUri("zk", None, ("a:1", "b:2"), "/ledgers")
    assert parse_uri(uri_from_zookeeper_keys("a:1", "/bk/l", "flat")) == MetadataUri("zk", "flat", ("a:1",), "/bk/l")


def test_layout_bytes() -> None:
    """LAYOUT has no newline at the end; the older form has a type name."""
    data = b"2\norg.apache.bookkeeper.meta.HierarchicalLedgerManagerFactory:1"
    assert Layout("hierarchical").to_bytes() == data
    assert parse_layout(data) == Layout("hierarchical", 1)
    assert parse_layout(b"1\nflat:1") == Layout("flat", 1)
    for wrong in (b"", b"3\nx:1", b"2\norg.apache.bookkeeper.meta.MSLedgerManagerFactory:1", data + b"1"):
        with pytest.raises(MetadataSerializationError, match="LAYOUT"):
            parse_layout(wrong)
    with pytest.raises(ConfigurationError, match="layout 'ms' is unknown"):
        layout_of_kind("ms")


@pytest.mark.parametrize(
    ("ledger_id", "short", "long", "flat"),
    [
        (1, "/00/0000/L0001", "/000/0000/0000/0000/L0001", "/L0000000001"),
        (1234567890, "/12/3456/L7890", "/000/0000/0012/3456/L7890", "/L1234567890"),
        (2147483646, "/21/4748/L3646", "/000/0000/0021/4748/L3646", "/L2147483646"),
        (2147483647, None, "/000/0000/0021/4748/L3647", "/L2147483647"),
        (123456789012345, None, "/000/0123/4567/8901/L2345", "/L123456789012345"),
    ],
)
def test_ledger_paths(ledger_id: int, short: str | None, long: str, flat: str) -> None:
    """The hybrid layout has short paths below 2147483647; the legacy layout has only these."""
    assert ledger_path(Layout("hierarchical"), ledger_id) == (short or long)
    assert ledger_path(Layout("longhierarchical"), ledger_id) == long
    assert ledger_path(Layout("flat"), ledger_id) == flat
    if short:
        assert ledger_path(Layout("legacyhierarchical"), ledger_id) == short
    else:
        with pytest.raises(LedgerIdOverflow, match="too large for layout legacyhierarchical"):
            ledger_path(Layout("legacyhierarchical"), ledger_id)


@given(st.integers(0, (1 << 63) - 1))
def test_a_path_gives_its_id_back(ledger_id: int) -> None:
    """The id that the list derives from node names is the one that made them."""
    for tree in (SHORT, LONG, FLAT):
        if tree is SHORT and ledger_id >= 10**10:
            continue
        names = tree.path(ledger_id).split("/")[1:]
        matches = [tree.level(depth).match(name) for depth, name in enumerate(names)]
        assert int("".join(match.group(1) for match in matches if match)) == ledger_id
        assert all(matches)
        assert len(names) == len(tree.widths)


def test_foreign_names_are_no_ledgers() -> None:
    """Other nodes among the ledgers are skipped, at every level."""
    for name in ("available", "cookies", "LAYOUT", "idgen", "idgen-long", "ID-0000000001", "000", "0", "1a"):
        assert not SHORT.level(0).match(name)
    for name in ("0000", "L000", "L00000", "l0000", "L0000\n"):
        assert not SHORT.level(2).match(name)
    assert not FLAT.level(0).match("LAYOUT")
