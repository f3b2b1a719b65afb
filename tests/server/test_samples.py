"""The sample configurations in conf/ load, and conf/bk.conf has every key with its default."""

import logging
import re
from pathlib import Path

import pytest

from bookie.server.configuration.keys import KEYS
from bookie.server.configuration.loader import load

CONF = Path(__file__).resolve().parents[2] / "conf"
ENVIRONMENT = {"PWD": "/srv/bookie"}


@pytest.mark.parametrize("name", ["bk.conf", "standalone.conf"])
def test_a_sample_loads_without_a_word(name: str) -> None:
    """A sample causes no warning, not even about a value."""
    loaded = load(CONF / name, ENVIRONMENT)
    assert [notice.text for notice in loaded.notices if notice.level > logging.DEBUG] == []


def test_the_sample_shows_every_key_once_with_its_default() -> None:
    """conf/bk.conf has every key once, and sets only those that must be set."""
    shown = re.findall(r"^(#?)(\w+)=(.*)$", (CONF / "bk.conf").read_text(), re.MULTILINE)
    assert [name for _, name, _ in shown] == list(KEYS)
    for commented, name, value in shown:
        assert not commented or value == KEYS[name].default, name
    assert {name for commented, name, _ in shown if not commented} == {
        "listeningInterface",
        "metadataServiceUri",
        "journalDirectories",
        "ledgerDirectories",
    }


def test_the_sample_says_what_each_key_means() -> None:
    """The comment above a key is the text of docs/configuration.md without its Markdown, followed by the unit."""
    blocks = re.findall(r"^((?:# .*\n)+)#?(\w+)=", (CONF / "bk.conf").read_text(), re.MULTILINE)
    assert [name for _, name in blocks] == list(KEYS)
    for comment, name in blocks:
        key = KEYS[name]
        wanted = key.doc.replace("`", "") + (f" Unit: {key.unit}." if key.unit else "")
        assert comment.replace("# ", "").split() == wanted.split(), name


def test_the_sample_changes_nothing_but_what_must_be_set() -> None:
    """Uncommenting every key gives the same settings."""
    text = (CONF / "bk.conf").read_text()
    given = load(CONF / "bk.conf", {}).settings
    keys = {f"BK_{name}": value for name, value in re.findall(r"^#(\w+)=(.+)$", text, re.MULTILINE)}
    assert load(CONF / "bk.conf", keys).settings == given
