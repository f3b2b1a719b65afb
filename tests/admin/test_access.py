"""Tokens, certificates and roles of the admin ports, and the audit log."""

import logging
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookie.admin_port.channel import ROLES, read_token
from bookie.errors import ConfigurationError
from bookie.server.configuration.settings import AccessSettings
from bookie_admin.access import Access, Caller, NotAuthenticated, RoleMissing, audit
from bookie_admin.roles import Role
from tests.fixtures.draws import examples

READER, OPERATOR = "r" * 16, "o" * 16
NOBODY = 65534


def tokens(directory: Path, text: str, mode: int = 0o600) -> str:
    """A tokens file."""
    path = directory / "tokens"
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_a_token_has_a_role(tmp_path: Path) -> None:
    """S1: unknown, wrong and missing tokens are refused; a reader may not operate; no error contains a token."""
    access = Access(AccessSettings(tokens_file=tokens(tmp_path, f"# ours\nread:{READER}\noperate:alice:{OPERATOR}\n")))
    reader, alice = access.caller(f"Bearer {READER}"), access.caller(f"bearer {OPERATOR}")
    assert (reader, alice) == (Caller("token:line-2", Role.READ), Caller("token:alice", Role.OPERATE))
    access.require(alice, Role.READ)
    with pytest.raises(RoleMissing, match="line-2 has the role read, but this needs operate") as refused:
        access.require(reader, Role.OPERATE)
    assert READER not in str(refused.value)
    for wrong in (None, "", READER, f"Basic {READER}", "Bearer ", f"Bearer {READER}x", f"Bearer {READER[1:]}"):
        with pytest.raises(NotAuthenticated) as unknown:
            access.caller(wrong)
        assert READER[1:] not in str(unknown.value)


@settings(max_examples=examples(30))
@given(st.text(st.characters(codec="utf-8"), max_size=40))
def test_nothing_else_is_a_token(text: str) -> None:
    """Any other header is refused, and never causes an error."""
    access = Access(AccessSettings(tls_client_ca="/ca", tls_subjects="read:ops"))
    with pytest.raises(NotAuthenticated):
        access.caller(f"Bearer {text}")


def test_certificates_have_roles() -> None:
    """The highest role of all names counts; a name without a rule has none."""
    access = Access(AccessSettings(tls_client_ca="/ca", tls_subjects="read:*, operate:ops.example"))
    assert access.caller(None, ["web.example"]) == Caller("certificate:web.example", Role.READ)
    assert access.caller(None, ["web.example", "ops.example"]).role == Role.OPERATE
    with pytest.raises(NotAuthenticated):
        Access(AccessSettings(tls_client_ca="/ca", tls_subjects="read:a")).caller(None, ["b"])
    with pytest.raises(ConfigurationError, match="not of the form role:name"):
        Access(AccessSettings(tls_client_ca="/ca", tls_subjects="root:a"))


def test_an_open_bookie_knows_everybody() -> None:
    """Without configuration, a caller without credentials may read metrics, and is told what other calls need."""
    assert Access(AccessSettings(insecure_allowed=True)).caller() == Caller("local", Role.ADMIN)
    access = Access(AccessSettings())
    assert access.caller() == Caller("local", Role.METRICS)
    with pytest.raises(NotAuthenticated, match=r"no token was sent; .* admin\.token"):
        access.require(access.caller(), Role.READ)
    with pytest.raises(NotAuthenticated):
        access.caller(f"Bearer {READER}")


def test_each_role_includes_those_before_it(tmp_path: Path) -> None:
    """All five names are read from a file; each role permits what the lower ones do, and nothing more."""
    words = [role.word for role in Role]
    assert tuple(reversed(words)) == ROLES
    text = "".join(f"{word}:{word}-token-of-20-bytes\n" for word in words)
    access = Access(AccessSettings(tokens_file=tokens(tmp_path, text)))
    for role in Role:
        caller = access.caller(f"Bearer {role.word}-token-of-20-bytes")
        for needed in Role:
            if needed <= role:
                access.require(caller, needed)
            else:
                with pytest.raises(RoleMissing, match=f"has the role {role.word}, but this needs {needed.word}"):
                    access.require(caller, needed)
    assert read_token(tokens(tmp_path, text)) == "admin-token-of-20-bytes"


@pytest.mark.parametrize(
    ("text", "mode", "says"),
    [
        (f"operate:{OPERATOR}", 0o640, "mode 640"),
        ("", 0o600, "no token"),
        (OPERATOR, 0o600, "line 1 does not begin with a role"),
        (f"root:{OPERATOR}", 0o600, "line 1 does not begin with a role"),
        ("\nread:short", 0o600, "line 2 has a token that is too short"),
        (f"read:a b:{READER}", 0o600, "line 1 has an invalid name"),
    ],
)
def test_a_tokens_file_that_cannot_be_used(tmp_path: Path, text: str, mode: int, says: str) -> None:
    """S8: it is refused at the start by key, path and remedy; the error reveals nothing of its content."""
    with pytest.raises(ConfigurationError, match=says) as refused:
        Access(AccessSettings(tokens_file=tokens(tmp_path, text, mode)))
    assert "adminTokensFile" in str(refused.value)
    assert OPERATOR not in str(refused.value)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize(("mode", "refused"), [(0o440, False), (0o400, False), (0o444, True), (0o460, True)])
def test_a_file_of_another_user(tmp_path: Path, mode: int, refused: bool) -> None:
    """S8: our group may be able to read the file, as for secrets mounted in containers; nobody else may access it."""
    path = tokens(tmp_path, f"operate:{OPERATOR}")
    os.chown(path, NOBODY, -1)
    Path(path).chmod(mode)
    if not refused:
        assert Access(AccessSettings(tokens_file=path)).caller(f"Bearer {OPERATOR}").role == Role.OPERATE
        return
    with pytest.raises(ConfigurationError, match=f"mode {mode:o}"):
        Access(AccessSettings(tokens_file=path))


def test_a_tokens_file_may_change(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The new tokens count at once; an unusable file leaves the previous ones in effect."""
    access = Access(AccessSettings(tokens_file=tokens(tmp_path, f"read:{READER}")))
    tokens(tmp_path, f"operate:{OPERATOR}\n")
    assert access.caller(f"Bearer {OPERATOR}").role == Role.OPERATE
    with pytest.raises(NotAuthenticated):
        access.caller(f"Bearer {READER}")
    tokens(tmp_path, "nothing of use")
    assert access.caller(f"Bearer {OPERATOR}").role == Role.OPERATE
    assert "cannot be used" in caplog.text


def test_the_audit_names_who_and_what(caplog: pytest.LogCaptureFixture) -> None:
    """One line with facts; empty ones are left out."""
    audit(Caller("token:alice", Role.OPERATE), "ipv4:127.0.0.1:1", "SetReadOnly", "done", read_only=True, ledger=None)
    (record,) = caplog.records
    said = record.__dict__
    assert (record.levelno, said["caller"], said["action"], said["read_only"]) == (
        logging.WARNING, "token:alice", "SetReadOnly", True
    )  # fmt: skip
    assert "ledger" not in said
