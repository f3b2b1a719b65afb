"""The error tree and its code table: complete, without duplicates, and printed where the reader looks."""

import pytest

from bookie import errors
from bookie.errors import (
    CLIENT_ERRORS,
    CODES,
    BookKeeperError,
    ProtocolVersionMismatch,
    ReadError,
    WriteError,
    error_from_client_code,
    error_from_v2,
    error_from_v3,
)
from bookie.pb import wire_pb2

CLIENT_CODES = {*range(-25, 0), *range(-108, -99), -200}


def test_every_client_code_has_its_class() -> None:
    """The Java client's numbers, all of them and each once."""
    assert {error.code for error in CLIENT_ERRORS} == CLIENT_CODES
    assert len(CLIENT_ERRORS) == len(CLIENT_CODES)
    for error in CLIENT_ERRORS:
        assert error_from_client_code(error.code) is error
    assert error_from_client_code(-999) is BookKeeperError
    assert error_from_client_code(5) is BookKeeperError


def test_the_table_equals_the_protocol() -> None:
    """Names and V3 numbers are those of the .proto file, none missing."""
    assert {row.name: row.v3 for row in CODES} == dict(wire_pb2.StatusCode.items())


@pytest.mark.parametrize("row", CODES, ids=[row.name for row in CODES])
def test_a_row_says_the_same_in_every_protocol(row: errors.Code) -> None:
    """V2 and V3 number mean the same class, and its code is the client's column."""
    assert row.v2 is not None
    assert row.v3 is not None
    for default in (ReadError, WriteError):
        expected = None if row.name == "EOK" else row.error or default
        assert error_from_v2(row.v2, default) is expected
        assert error_from_v3(row.v3, default) is expected
    if row.error is not None:
        assert row.error.code == row.client


def test_unknown_numbers_are_refused() -> None:
    """A peer that sends a code outside the table does not speak our protocol."""
    for number in (-1, 3, 108, 500):
        with pytest.raises(ProtocolVersionMismatch, match=str(number)):
            error_from_v2(number, ReadError)
    with pytest.raises(ProtocolVersionMismatch, match="V3 status 1 "):
        error_from_v3(1, ReadError)


def test_duplicates_end_the_import() -> None:
    """A second row for a number is found when the module is loaded, not when a client meets it."""
    with pytest.raises(ImportError, match="V2 code 1 is listed twice, for a and b"):
        errors._unique([(1, "a"), (None, "x"), (None, "y"), (1, "b")], "V2 code")


def test_the_docstring_is_the_table() -> None:
    """`help(bookie.errors)` shows each row."""
    for row in CODES:
        assert f"\n{row.name} " in errors.__doc__
    for error in CLIENT_ERRORS:
        assert error.__name__ in errors.__doc__
