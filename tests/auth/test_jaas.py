"""Tests of the JAAS file: what Java accepts is read, and what is broken is named by its line."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookie.auth.jaas import read_section
from bookie.errors import ConfigurationError

SAMPLE = """
/* two sections, one of two modules */
Bookie {
   // comment with "a quote
   org.apache.zookeeper.server.auth.DigestLoginModule required
       user_hd="test\\"pwd" user_foo='bar';
   other.Module optional debug=true;
};
# another comment
BookKeeper { org.apache.zookeeper.server.auth.DigestLoginModule required username="hd" password="a{b}c;"; };
"""


def read(directory: Path, text: str, section: str = "Bookie") -> dict[str, str]:
    """Return the section of a file with this text."""
    file = directory / "jaas.conf"
    file.write_text(text)
    return read_section(str(file), section)


def test_sections_modules_and_options(tmp_path: Path) -> None:
    """Comments, quotes with marks inside and several modules are read."""
    assert read(tmp_path, SAMPLE) == {"user_hd": 'test"pwd', "user_foo": "'bar'", "debug": "true"}
    assert read(tmp_path, SAMPLE, "BookKeeper") == {"username": "hd", "password": "a{b}c;"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('Bookie { a.B required user_x="s3cret; };', "line 1: a quote"),
        ('Bookie {\n a.B required user_x "s3cret"; };', "line 2: `=` is missing"),
        ("Bookie {\n a.B required user_x=s3cret", "ends inside a section"),
        ("Bookie { a.B required }; ", "a name or value is missing"),
        ("Bookie { a.B required; }", "ends inside a section"),
        ("", "section Bookie is missing"),
    ],
)
def test_broken_files_are_named_without_their_secrets(tmp_path: Path, text: str, why: str) -> None:
    """The error is one line that says where the file is broken."""
    with pytest.raises(ConfigurationError, match=why) as refused:
        read(tmp_path, text)
    assert "s3cret" not in str(refused.value)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    """A file that is missing or is not text is refused."""
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_section(str(tmp_path / "none"), "Bookie")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_section(str(tmp_path / "binary"), "Bookie")


@given(st.text('Bokie{};="\\/* #\na', max_size=60))
def test_any_text_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    """Whatever the text is, no other error is raised."""
    file = tmp_path_factory.getbasetemp() / "any.conf"
    file.write_text(text)
    with contextlib.suppress(ConfigurationError):
        read_section(str(file), "Bookie")
