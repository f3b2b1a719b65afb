"""Test that OpenSSL is the copy inside the cryptography package, and that the error names a remedy otherwise."""

import subprocess
import sys

import pytest
from OpenSSL import SSL

from bookie._fast.base import openssl_c

REMEDY = "pip install 'pyopenssl>=25.2'"

ABSENT = "import sys; sys.modules['OpenSSL'] = None"
NO_BINDING = """
import OpenSSL.SSL
from cryptography.hazmat.bindings import _rust
_rust._openssl = object()
"""
PATCHED = """
from cryptography.hazmat.bindings import _rust
real = _rust._openssl
class Ffi:
    def __getattr__(self, name): return getattr(real.ffi, name)
    def addressof(self, lib, name):
        if name == {name!r}: {effect}
        return real.ffi.addressof(lib, name)
class Binding:
    ffi, lib = Ffi(), real.lib
import OpenSSL.SSL
_rust._openssl = Binding()
"""
NO_SYMBOL = PATCHED.format(name="BIO_read", effect="raise AttributeError(name)")
OTHER_TYPE = PATCHED.format(name="SSL_read", effect="name = 'SSL_free'")


def test_version() -> None:
    """The library is the one that pyOpenSSL reports."""
    assert openssl_c.version() == SSL.OpenSSL_version(SSL.OPENSSL_VERSION).decode()


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        (ABSENT, "OpenSSL cannot be loaded"),
        (NO_BINDING, "does not expose OpenSSL's functions"),
        (NO_SYMBOL, "does not expose BIO_read"),
        (OTHER_TYPE, "SSL_read of the cryptography package is void(*)(SSL *), not int(*)(SSL *, void *, int)"),
    ],
)
def test_refuses_to_work_without_it(trouble: str, reason: str) -> None:
    """Its first use fails with a message that names the remedy, in a process of its own, as functions load once."""
    program = f"{trouble}\nfrom bookie._fast.base import openssl_c\nopenssl_c.version()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 1
    assert last.startswith("ImportError:")
    assert reason in last
    assert REMEDY in last


@pytest.mark.parametrize("module", ["bookie._fast.server.io_loop", "bookie.server.main"])
def test_nothing_is_loaded_before_it_is_needed(module: str) -> None:
    """A bookie without TLS imports neither package, since that would lengthen its start."""
    program = f"import {module}, sys; print('cryptography' in sys.modules, 'OpenSSL' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
