"""The properties syntax, compared with the reference model and with text made from known pairs, and by example."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookie.server.configuration.properties import PropertiesError, interpolate, parse
from tests.reference.properties import load

PIECES = st.sampled_from(
    ["a", "b=", "=", ":", " ", "\t", "\f", "\\", "\n", "\r", "\r\n", "#", "!", "\\u0041", "\\u12", "é", "\\n"]
)


def pairs(text: str) -> list[tuple[str, str]]:
    return [(item.key, item.value) for item in parse(text)]


@given(st.lists(PIECES, max_size=40).map("".join))
def test_like_the_reference(text: str) -> None:
    """Any text gives the pairs of the reference, or an error where the reference refuses too."""
    try:
        expected = load(text)
    except ValueError:
        with pytest.raises(PropertiesError):
            parse(text)
        return
    assert pairs(text) == expected


def escape(text: str, *, key: bool) -> str:
    special = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f", "\\": "\\\\"}
    out = "".join(special.get(character, character) for character in text)
    if key:
        return "".join("\\" + character if character in "=: #!" else character for character in out)
    return "\\" + out if out.startswith((" ", "=", ":")) else out


TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)


@given(st.lists(st.tuples(TEXTS.filter(bool), TEXTS, st.sampled_from(["=", ":", " = ", "\t:", "=\\\n   "]))))
def test_written_pairs_come_back(items: list[tuple[str, str, str]]) -> None:
    """What is escaped by the rules is read back unchanged, with continuation lines and comments in between."""
    lines = [f"# {number}\n\n  {escape(key, key=True)}{between}{escape(value, key=False)}\n"
             for number, (key, value, between) in enumerate(items)]  # fmt: skip
    assert pairs("".join(lines)) == [(key, value) for key, value, _ in items]


def test_line_numbers() -> None:
    """Each assignment has the number of the line where it begins."""
    found = parse("# c\na=1\n\nb=2,\\\n   3\nc")
    assert [(item.key, item.value, item.line) for item in found] == [("a", "1", 2), ("b", "2,3", 4), ("c", "", 6)]


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\uzzzz", "\\u=1", "a=\\ud800"])
def test_bad_escapes_name_the_line(text: str) -> None:
    """A broken unicode escape is an error with its line."""
    with pytest.raises(PropertiesError, match="line 2"):
        parse("x=1\n" + text)


def test_interpolation() -> None:
    """${env:X} is replaced wherever it appears."""
    assert interpolate("a/${env:X}/${env:Y}", {"X": "1", "Y": "2"}) == "a/1/2"
    assert interpolate("$X ${", {}) == "$X ${"


@pytest.mark.parametrize(("value", "says"), [("${env:X}", "X is not set"), ("${sys:user}", "only"), ("${a}", "only")])
def test_interpolation_refuses(value: str, says: str) -> None:
    """An unset variable and other forms are errors that say so."""
    with pytest.raises(PropertiesError, match=says):
        interpolate(value, {})
