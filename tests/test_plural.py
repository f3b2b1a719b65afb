"""Messages have the right form of a noun."""

import pytest

from bookie.plural import counted


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (counted(0, "ledger"), "0 ledgers"),
        (counted(1, "entry"), "1 entry"),
        (counted(2, "entry"), "2 entries"),
        (counted(3, "index", "indices"), "3 indices"),
    ],
)
def test_number_and_noun(text: str, expected: str) -> None:
    """One thing is singular, none and many are plural."""
    assert text == expected
