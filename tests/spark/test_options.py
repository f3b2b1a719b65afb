"""Options: case-insensitive, typed, and one line with option, value and remedy."""

import contextlib
import pickle
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookie.errors import ConfigurationError
from bookie.spark.options import Cluster, Options

URI = {"metadataserviceuri": "zk+hierarchical://127.0.0.1:2181/ledgers"}


def options(**given: str) -> Options:
    """Return options in lower case, as Spark passes them."""
    return Options("bookkeeper", {**URI, **{name.lower(): value for name, value in given.items()}})


def test_names_have_no_case_and_values_have_types() -> None:
    """Each kind of value, given and by default."""
    some = options(readMode="UNCONFIRMED", pushdown="True", minPartitions="3", size="4m", wait="1.5h", log="a")
    assert some.choice("readMode", "confirmed", ("confirmed", "unconfirmed")) == "unconfirmed"
    assert some.boolean("pushDown", default=False)
    assert not some.boolean("other", default=False)
    assert some.integer("minPartitions", None) == 3
    assert some.integer("maxPartitions", None) is None
    assert some.size("size", 0) == 4 << 20
    assert some.seconds("wait", "15m") == 5400
    assert some.seconds("wait2", "15m") == 900
    assert some.exactly_one("ledgers", "log") == "log"
    assert some.cluster() == Cluster(URI["metadataserviceuri"])
    some.finish()


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda o: o.choice("a", "x", ("x", "y")), "option a='7 mice' of format bookkeeper: must be one of x, y"),
        (lambda o: o.boolean("a", default=True), "option a='7 mice' of format bookkeeper: must be true or false"),
        (lambda o: o.integer("a", 1, high=9), "a='7 mice' of format bookkeeper: must be a whole number from 1 to 9"),
        (lambda o: o.size("a", 1, high=9), "a='7 mice' of format bookkeeper: must be a number of bytes from 1 to 9"),
        (lambda o: o.seconds("a", "1s"), "a='7 mice' of format bookkeeper: must be a duration with its unit"),
        (lambda o: o.required("b", "x://y"), "option b of format bookkeeper: is required, for example x://y"),
        (lambda o: o.exactly_one("b", "c"), "format bookkeeper: give exactly one of b, c; got none"),
        (lambda o: (o.boolean("aa", default=True), o.finish()), "no such option; did you mean aa?"),
    ],
)
def test_a_wrong_value_is_one_line_with_the_remedy(read: object, message: str) -> None:
    """This holds for each kind of value."""
    assert callable(read)
    with pytest.raises(ConfigurationError) as error:
        read(Options("bookkeeper", {"a": "7 mice"}))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_ids_are_counted_before_they_are_listed() -> None:
    """Ids are unique and ascending. Too many are refused in one line with option, value and limit."""
    assert options(ledgers="7, 1-3,2").ids("ledgers", 4) == (1, 2, 3, 7)
    assert options().ids("ledgers", 4) == ()
    for text in ("0-4", "0-999999999999"):
        with pytest.raises(ConfigurationError, match=f"option ledgers='{text}' .* at most 4 can be"):
            options(ledgers=text).ids("ledgers", 4)


def test_settings_of_the_client_are_passed_on() -> None:
    """`bookkeeper.*` in lower case becomes the client's setting with its spelling, validated by the client."""
    cluster = options(**{"bookkeeper.batchReadEnabled": "false", "bookkeeper.readentrytimeoutsec": "7"}).cluster()
    assert dict(cluster.settings) == {"batchReadEnabled": "false", "readEntryTimeoutSec": "7"}
    assert pickle.loads(pickle.dumps(cluster)) == cluster  # noqa: S301  # our own
    assert dict(cluster.with_settings(batchReadEnabled="true", stickyReadSEnabled="true").settings) == {
        "batchReadEnabled": "false",
        "readEntryTimeoutSec": "7",
        "stickyReadSEnabled": "true",
    }
    with pytest.raises(ConfigurationError, match=r"did you mean bookkeeper\.batchReadEnabled"):
        options(**{"bookkeeper.batchReadEnable": "false"}).cluster()
    with pytest.raises(ConfigurationError, match=r"option bookkeeper\.readEntryTimeoutSec.*soon"):
        options(**{"bookkeeper.readEntryTimeoutSec": "soon"}).cluster()


def test_passwords_are_not_shown() -> None:
    """Neither in an error nor where a cluster is printed."""
    assert "geheim" not in str(options(password="geheim").wrong("password", "is wrong"))
    assert "geheim" not in repr(options(**{"bookkeeper.passwd": "geheim"}).cluster())


READS: tuple[Callable[[Options], object], ...] = (
    lambda some: some.integer("a", 1),
    lambda some: some.size("a", 1),
    lambda some: some.seconds("a", "1s"),
    lambda some: some.boolean("a", default=True),
)


@given(st.text())
def test_any_text_is_a_value_or_that_error(text: str) -> None:
    """No value causes another error."""
    for read in READS:
        with contextlib.suppress(ConfigurationError):
            read(Options("x", {"a": text}))
