"""Cookies are listed in any state, compared, and rewritten only on request."""

import stat
from pathlib import Path

import pytest

from bookie.errors import ToolRefused
from bookie.storage.cookies import Cookie, make_cookie
from bookie.storage.tools.cookie_files import compare_cookies, rewrite_cookie, show_cookies


class Store:
    """A metadata store with one cookie, or none."""

    def __init__(self, text: bytes | None) -> None:
        self.text = text

    def read(self, _bookie_id: str) -> tuple[bytes, int] | None:
        return None if self.text is None else (self.text, 0)

    def write(self, _bookie_id: str, _text: bytes, _version: int | None) -> int:
        raise AssertionError("looking writes nothing")


@pytest.fixture
def cookie(tmp_path: Path) -> Cookie:
    """The cookie of a bookie with two ledger directories."""
    return make_cookie("b:1", journals=[tmp_path / "j"], ledgers=[tmp_path / "a", tmp_path / "b"], instance_id="one")


def test_side_by_side(tmp_path: Path, cookie: Cookie) -> None:
    """Missing, foreign and damaged cookies are reported, right ones are not, and nothing is changed."""
    rewrite_cookie(tmp_path / "j", cookie)
    other = make_cookie("b:1", journals=[tmp_path / "j"], ledgers=[tmp_path / "b"], instance_id="one")
    rewrite_cookie(tmp_path / "a", other)
    (tmp_path / "b/current").mkdir(parents=True)
    (tmp_path / "b/current/VERSION").write_bytes(b"no cookie")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    directories = [tmp_path / name for name in ("j", "a", "b", "c", "j")]
    found = compare_cookies(show_cookies("b:1", Store(cookie.to_bytes()), directories))
    assert [one.cookie for one in found] == [cookie, cookie, other, None, None]
    problems = [one.problem for one in found]
    assert problems[:2] == ["", ""]
    assert problems[2].startswith(f"{tmp_path}/a/current/VERSION says ledgerDirs=")
    assert "is not a cookie" in problems[3]
    assert problems[4] == f"{tmp_path}/c/current/VERSION is missing"
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_the_store_has_none(tmp_path: Path, cookie: Cookie) -> None:
    """The missing cookie of the store comes first; without a store only directories are listed."""
    rewrite_cookie(tmp_path / "j", cookie)
    found = show_cookies("b:1", Store(None), [tmp_path / "j"])
    assert found[0].problem == "the metadata store's cookie of b:1 is missing"
    assert len(show_cookies("b:1", None, [tmp_path / "j"])) == 1


def test_written_anew(tmp_path: Path, cookie: Cookie) -> None:
    """A cookie is written to an empty directory, and over another one only with `replace`."""
    path = rewrite_cookie(tmp_path / "a", cookie)
    assert path.read_bytes() == cookie.to_bytes()
    assert stat.S_ISREG(path.stat().st_mode)
    assert rewrite_cookie(tmp_path / "a", cookie) == path
    other = make_cookie("c:1", journals=[tmp_path / "j"], ledgers=[tmp_path / "a"], instance_id="one")
    with pytest.raises(ToolRefused, match="says bookieHost='b:1' instead of 'c:1'"):
        rewrite_cookie(tmp_path / "a", other)
    rewrite_cookie(tmp_path / "a", other, replace=True)
    assert path.read_bytes() == other.to_bytes()


def test_an_unreadable_one_is_not_written_over(tmp_path: Path, cookie: Cookie) -> None:
    """Bytes that are not a cookie may be a damaged one, so they are not overwritten."""
    (tmp_path / "a/current").mkdir(parents=True)
    (tmp_path / "a/current/VERSION").write_bytes(b"?")
    with pytest.raises(ToolRefused, match="is not a cookie"):
        rewrite_cookie(tmp_path / "a", cookie)
