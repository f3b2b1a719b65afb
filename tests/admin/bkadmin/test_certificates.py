"""bkadmin and an admin port that demands certificates: whoever is not let in hears soon why that may be."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.admin.bkadmin.conftest import BkAdmin
from tests.fixtures.bookies import BookieProcess
from tests.fixtures.certificates import Authority

pytestmark = pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives")
SOON_S = 8.0
"""Less than the patience of a command; each of these answers takes a second."""


@pytest.mark.thorough
def test_who_is_not_let_in(bookies: Callable[..., list[BookieProcess]], bkadmin: BkAdmin, tmp_path: Path) -> None:
    """No certificate, an expired one, another authority's, and TLS on one side only."""
    ca, stranger = Authority(tmp_path / "ca"), Authority(tmp_path / "other", "other")
    own = ca.issue("bookie", hosts=["127.0.0.1"])
    (guarded,) = bookies(
        1,
        adminTlsCertificatePath=str(own.certificate),
        adminTlsKeyPath=str(own.key),
        adminTlsClientCaPath=str(ca.certificate),
        adminTlsSubjects="operate:ops",
    )
    (plain,) = bookies(1)
    right = ("--admin", guarded.admin, "--tls-ca", ca.certificate)

    def party(name: str, issuer: Authority = ca, age_days: int = 0) -> tuple[str | Path, ...]:
        made = issuer.issue(name, age_days=age_days)
        return ("--tls-cert", made.certificate, "--tls-key", made.key)

    assert bkadmin("readonly", *right, *party("ops")).code == 0
    asked = f"grpcs://{plain.admin}?ca={ca.certificate}"
    for words, says in (
        (("readonly", *right), "whether it demands a certificate of its clients"),
        (("status", "--watch", *right), "whether it demands a certificate of its clients"),
        (("readonly", *right, *party("old", age_days=30)), "old.pem, which expired on 2"),
        (("readonly", *right, *party("ops", stranger)), "ops.pem is of an authority that the bookie knows"),
        (("readonly", *right, *party("nobody")), "add the certificate's name to adminTlsSubjects"),
        (("readonly", "--admin", guarded.admin), "whether its port requires TLS"),
        (("readonly", "--admin", plain.admin, "--tls-ca", ca.certificate), "that the port has TLS"),
        (("listbookies", "-u", asked), "the TLS handshake failed; check that the port has TLS, and ca= of the URI"),
    ):
        begun = time.monotonic()
        done = bkadmin(*words)
        took = time.monotonic() - begun
        assert (done.code, done.err.count("\n")) == (1, 1), done.err
        assert says in done.err
        assert took < SOON_S, words
