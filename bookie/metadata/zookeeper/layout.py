"""LAYOUT, the node that says how a cluster arranges its ledgers. Pure values; any thread.

The bytes are `2`, a newline and `<class>:<version>`, without a newline at the end; the older form is `1` with a type
name.
"""

from dataclasses import dataclass

from bookie.errors import ConfigurationError, MetadataSerializationError

PACKAGE = "org.apache.bookkeeper.meta."
CLASS_OF_TYPE = {
    "hierarchical": f"{PACKAGE}HierarchicalLedgerManagerFactory",
    "longhierarchical": f"{PACKAGE}LongHierarchicalLedgerManagerFactory",
    "legacyhierarchical": f"{PACKAGE}LegacyHierarchicalLedgerManagerFactory",
    "flat": f"{PACKAGE}FlatLedgerManagerFactory",
}
TYPE_OF_CLASS = {name: kind for kind, name in CLASS_OF_TYPE.items()}
TYPE_DEFAULT = "hierarchical"


@dataclass(frozen=True, slots=True)
class Layout:
    """The ledger manager that a cluster uses. `kind` is its short name, as in a URI."""

    kind: str = TYPE_DEFAULT
    version: int = 1

    def to_bytes(self) -> bytes:
        return f"2\n{CLASS_OF_TYPE[self.kind]}:{self.version}".encode()


def layout_of_kind(kind: str | None) -> Layout:
    """Return the layout for a URI's suffix. Raises ConfigurationError if it is not supported."""
    if kind is not None and kind not in CLASS_OF_TYPE:
        raise ConfigurationError(f"ledger layout {kind!r} is unknown: use one of {', '.join(CLASS_OF_TYPE)}")
    return Layout(kind or TYPE_DEFAULT)


def parse_layout(data: bytes) -> Layout:
    """Parse a layout. Raises MetadataSerializationError if it is not supported."""
    form, _, body = data.decode("utf-8", "replace").strip().partition("\n")
    name, _, version = body.strip().partition(":")
    kind = name if form == "1" else TYPE_OF_CLASS.get(name)
    if form not in {"1", "2"} or kind not in CLASS_OF_TYPE or version != "1":
        raise MetadataSerializationError(f"LAYOUT {data!r} is not one of {', '.join(CLASS_OF_TYPE)}, version 1")
    return Layout(kind, 1)
