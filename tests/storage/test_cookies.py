"""B16: the text of the cookie byte for byte, when two cookies are equal, and every start that must be refused."""

import contextlib
import errno
import itertools
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookie.errors import ConfigurationError, CookieError, MetadataVersionConflict
from bookie.metadata.key_value.driver import KeyValueCookies
from bookie.metadata.key_value.embedded import EmbeddedStore
from bookie.storage.cookies import Cookie, make_cookie, parse_cookie, validate_cookies, write_cookie_file

BOOKIE = "10.0.0.5:3181"
INSTANCE = "3d2f0b7e-52f1-4b8a-9c1f-6e0f5d1c9a77"
EXAMPLE = rb"""5
bookieHost: "10.0.0.5:3181"
journalDir: "/data/journal"
ledgerDirs: "2\t/data/l1\t/data/l2"
instanceId: "3d2f0b7e-52f1-4b8a-9c1f-6e0f5d1c9a77"
indexDirs: "2\t/data/l1\t/data/l2"
"""
NO_ROOM = """
import resource, sys
from pathlib import Path
from bookie._fast.base import fatal
from bookie.errors import CookieError
from bookie.storage.cookies import write_cookie_file

resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
try:
    write_cookie_file(Path(sys.argv[1]), b"text")
except CookieError as error:
    sys.stdout.write(f"{error}\\n{fatal.wait(0)}\\n")
"""
ROOT = Path(__file__).resolve().parents[2]


class Disks:
    """The directories of a bookie, its cookie, and a metadata store that may know it."""

    def __init__(self, path: Path, store: KeyValueCookies) -> None:
        self.store = store
        self.journal, self.first, self.second = (path / name for name in ("journal", "ledgers-1", "ledgers-2"))
        self.directories = [self.journal, self.first, self.second]
        for directory in self.directories:
            directory.mkdir()

    def cookie(self, bookie_id: str = BOOKIE, *, ledgers: list[Path] | None = None, instance: str = INSTANCE) -> Cookie:
        """Return the cookie that the configuration implies."""
        return make_cookie(
            bookie_id, journals=[self.journal], ledgers=ledgers or [self.first, self.second], instance_id=instance
        )

    def validate(self, cookie: Cookie | None = None, **settings: object) -> None:
        """Start up to the validation of the cookies."""
        validate_cookies(cookie or self.cookie(), self.store, self.directories, **settings)  # type: ignore[arg-type]

    def state(self) -> dict[str, object]:
        """Return everything that validation could have changed."""
        found: dict[str, object] = {
            str(path): path.read_bytes()
            for directory in self.directories
            for path in directory.rglob("*")
            if path.is_file()
        }
        found["store"] = self.store.read(BOOKIE)
        return found


@pytest.fixture
def disks(tmp_path: Path) -> object:
    """Three empty directories and a metadata store without cookies."""
    store = EmbeddedStore(tmp_path / "metadata")
    store.start()
    yield Disks(tmp_path, KeyValueCookies(store))
    store.stop()


def test_the_worked_example() -> None:
    """The documented example is written and read byte for byte."""
    cookie = make_cookie(
        BOOKIE,
        journals=[Path("/data/journal")],
        ledgers=[Path("/data/l1"), Path("/data/l2")],
        indexes=[Path("/data/l1"), Path("/data/l2")],
        instance_id=INSTANCE,
    )
    assert cookie.to_bytes() == EXAMPLE
    assert parse_cookie(EXAMPLE, "x") == cookie


@given(st.text(max_size=30), st.text(max_size=30))
@pytest.mark.thorough
def test_any_text_survives_its_escapes(host: str, directory: str) -> None:
    """Tabs, quotes, control characters and other alphabets are written as ASCII and read back unchanged."""
    cookie = Cookie(bookie_id=host, journal_directories=directory, ledger_directories=f"1\t{directory}")
    assert cookie.to_bytes().isascii()
    assert parse_cookie(cookie.to_bytes(), "x") == cookie


def test_escapes_are_the_short_ones() -> None:
    r"""The short escapes \b \f \n \r \t \\ \' \" are used, and octal escapes for all else that is not printable."""
    cookie = Cookie(bookie_id="\b\f\n\r\t\\'\"\0é", journal_directories="", ledger_directories="")
    assert rb'bookieHost: "\b\f\n\r\t\\\'\"\000\303\251"' in cookie.to_bytes()


def test_older_layouts_are_read() -> None:
    """Layout 3 is read as plain lines, and layout 4 as the same text without index directories."""
    plain = parse_cookie(b"3\nbk:3181\n/j\n1\t/l\n", "x")
    assert (plain.bookie_id, plain.journal_directories, plain.ledger_directories) == ("bk:3181", "/j", "1\t/l")
    fourth = parse_cookie(b'4\nbookieHost: "bk:3181"\njournalDir: "/j"\nledgerDirs: "1\\t/l"\n', "x")
    assert plain.difference(fourth) is None
    assert (plain.layout, fourth.layout) == (3, 4)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "is not a cookie"),
        (b"hello\n", "is not a cookie: it starts with b'hello'"),
        (b"2\na\nb\nc\n", "layout 2"),
        (b"6\n", "layout 6; the known layouts are 3 to 5: upgrade this bookie"),
        (b"3\nonly one line\n", "1 lines"),
        (b'5\nbookieHost: "a"\n', "journalDir, ledgerDirs are missing"),
        (b"5\nnot protobuf\n", "cannot be read"),
        (b"5\n\xff\xfe", "cannot be read"),
    ],
)
def test_what_is_no_cookie_is_refused(text: bytes, why: str) -> None:
    """Foreign, newer or damaged text is refused with the file and the reason."""
    with pytest.raises(CookieError, match="/data/VERSION") as refusal:
        parse_cookie(text, "/data/VERSION")
    assert why in str(refusal.value)


@pytest.mark.filterwarnings("ignore:invalid escape sequence:DeprecationWarning")
def test_a_flipped_bit_is_noticed() -> None:
    """Every flipped bit is noticed, except the one that changes the layout to the previous one, which is equivalent."""
    cookie = make_cookie(BOOKIE, journals=[Path("/j")], ledgers=[Path("/l")], instance_id=INSTANCE)
    text, passed = cookie.to_bytes(), []
    for at, bit in itertools.product(range(len(text)), range(8)):
        flipped = bytearray(text)
        flipped[at] ^= 1 << bit
        with contextlib.suppress(CookieError):
            if cookie.difference(parse_cookie(bytes(flipped), "x")) is None:
                passed.append((at, bit))
    assert passed == [(0, 0)]


def test_a_new_bookie_is_stamped(disks: Disks) -> None:
    """A new bookie gets the same bytes in every directory and in the store, and the next start accepts them."""
    disks.validate()
    text = disks.cookie().to_bytes()
    assert disks.store.read(BOOKIE) == (text, 0)
    for directory in disks.directories:
        assert (directory / "current" / "VERSION").read_bytes() == text
        assert [path.name for path in (directory / "current").iterdir()] == ["VERSION"]
    before = disks.state()
    disks.validate()
    assert disks.state() == before


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_lost_directory_is_not_started_on(disks: Disks, lost: int) -> None:
    """The store knows the bookie but one directory is empty: a replaced disk must not pass for a new bookie."""
    disks.validate()
    path = disks.directories[lost] / "current" / "VERSION"
    path.unlink()
    before = disks.state()
    with pytest.raises(CookieError, match=f"{path} is missing") as refusal:
        disks.validate()
    assert f"bkadmin recover -d {BOOKIE}" in str(refusal.value)
    assert disks.state() == before


@pytest.mark.parametrize("kept", [1, 2, 3])
def test_a_bookie_unknown_to_the_store_does_not_start(disks: Disks, kept: int) -> None:
    """Directories have a cookie but the store has none: it is another store, or the bookie was decommissioned."""
    disks.validate()
    disks.store.remove(BOOKIE)
    for directory in disks.directories[kept:]:
        (directory / "current" / "VERSION").unlink()
    before = disks.state()
    with pytest.raises(CookieError, match=f"metadata store has no cookie of bookie {BOOKIE}") as refusal:
        disks.validate()
    assert f"bkadmin cookie_create {BOOKIE} -cf {disks.directories[0]}" in str(refusal.value)
    assert disks.state() == before


def test_all_directories_lost_is_not_a_new_bookie(disks: Disks) -> None:
    """With all directories empty, the cookie in the store still refuses the start."""
    disks.validate()
    for directory in disks.directories:
        (directory / "current" / "VERSION").unlink()
    with pytest.raises(CookieError, match="the metadata store has a cookie of bookie"):
        disks.validate()


@pytest.mark.parametrize("stray", ["current/0.log", "current/lastMark", "1.txn", "lastId", "VERSION"])
def test_unknown_files_are_not_a_new_bookie(disks: Disks, stray: str) -> None:
    """Files without a cookie, in the current or an older layout, refuse the start, and nothing is overwritten."""
    path = disks.second / stray
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"x")
    before = disks.state()
    with pytest.raises(CookieError, match=f"{path} exists"):
        disks.validate()
    assert disks.state() == before


def test_a_mount_point_is_empty(disks: Disks) -> None:
    """Files that a file system itself puts into its root do not count as data."""
    (disks.first / "lost+found").mkdir()
    disks.validate()


@pytest.mark.parametrize(
    ("change", "field", "remedy"),
    [
        ({"bookie_id": "10.0.0.6:3181"}, "bookieHost", "bkadmin updatecookie -b --old 10.0.0.5:3181"),
        ({"instance": "another"}, "instanceId", "a cluster other than"),
        ({"ledgers": "swapped"}, "ledgerDirs", "including the order"),
        ({"ledgers": "fewer"}, "ledgerDirs", "including the order"),
    ],
)
def test_a_contradiction_names_both_sides(disks: Disks, change: dict[str, str], field: str, remedy: str) -> None:
    """OP3: another id, cluster or order of directories is refused with the file, both values and the remedy."""
    disks.validate()
    ledgers = {"swapped": [disks.second, disks.first], "fewer": [disks.first]}.get(change.get("ledgers", ""))
    changed = disks.cookie(change.get("bookie_id", BOOKIE), instance=change.get("instance", INSTANCE), ledgers=ledgers)
    before = disks.state()
    with pytest.raises(CookieError, match=f"says {field}=") as refusal:
        disks.validate(changed)
    assert remedy in str(refusal.value)
    assert "but this bookie has" in str(refusal.value)
    assert str(refusal.value).endswith("bkadmin updatecookie -l shows all its cookies")
    assert "\n" not in str(refusal.value)
    assert disks.state() == before


def test_an_earlier_id_is_found(disks: Disks) -> None:
    """A bookie that was known by its address and now has a name is found by the old cookie in the store."""
    disks.validate()
    for directory in disks.directories:
        (directory / "current" / "VERSION").unlink()
    with pytest.raises(CookieError, match=f"the metadata store's cookie of {BOOKIE} says bookieHost"):
        disks.validate(disks.cookie("host-a:3181"), candidate_ids=["host-a:3181", BOOKIE])


def test_index_directories_default_to_the_ledgers(disks: Disks) -> None:
    """A cookie without index directories equals one that names the ledger directories as such."""
    disks.validate()
    disks.validate(
        make_cookie(
            BOOKIE,
            journals=[disks.journal],
            ledgers=[disks.first, disks.second],
            indexes=[disks.first, disks.second],
            instance_id=INSTANCE,
        )
    )


def test_expansion_is_refused_with_several_directories(disks: Disks) -> None:
    """One more directory would change the directories of ledgers, so expansion is refused with several."""
    with pytest.raises(ConfigurationError, match="allowStorageExpansion=true is not supported"):
        disks.validate(allow_expansion=True)
    assert disks.state() == {"store": None}
    disks.directories = [disks.journal, disks.first]
    disks.validate(disks.cookie(ledgers=[disks.first]), allow_expansion=True)


def test_a_disk_that_fails_while_stamping(disks: Disks) -> None:
    """If the second directory cannot be written, the store gets no cookie, and the next start refuses the bookie."""

    def failing(path: Path, text: bytes) -> None:
        if disks.second in path.parents:
            raise CookieError(f"{path}: no space")
        write_cookie_file(path, text)

    with pytest.raises(CookieError, match="no space"):
        disks.validate(write_file=failing)
    assert disks.store.read(BOOKIE) is None
    with pytest.raises(CookieError, match="metadata store has no cookie"):
        disks.validate()


def test_another_process_was_faster(disks: Disks) -> None:
    """The start is refused if the store got a cookie of this id while our directories were being stamped."""

    def racing(path: Path, text: bytes) -> None:
        write_cookie_file(path, text)
        if disks.second in path.parents:
            disks.store.write(BOOKIE, b"theirs", None)

    with pytest.raises(MetadataVersionConflict):
        disks.validate(write_file=racing)
    assert disks.store.read(BOOKIE) == (b"theirs", 0)


def test_a_failed_write_is_fatal(tmp_path: Path) -> None:
    """B2: a failed write sets the fatal latch with file and error, and leaves nothing that hinders the next start."""
    path = tmp_path / "current" / "VERSION"
    done = subprocess.run([sys.executable, "-c", NO_ROOM, path], cwd=ROOT, capture_output=True, text=True, check=True)
    said, latch = done.stdout.splitlines()
    assert said == f"{path} could not be written: File too large; restart the bookie"
    assert latch == str((f"write of {path}", errno.EFBIG))
    assert list(path.parent.iterdir()) == []


def test_unreadable_directories_are_named(disks: Disks) -> None:
    """A directory that cannot be read is reported, not treated as empty."""
    (disks.first / "current" / "VERSION").mkdir(parents=True)
    with pytest.raises(CookieError, match=f"{disks.first}/current/VERSION cannot be read"):
        disks.validate()
