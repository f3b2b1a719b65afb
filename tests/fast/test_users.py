"""Test users as Python holds them: their counters, and revoking them. tests/hostile/test_rights.py uses sockets."""

from bookie._fast.server import users
from bookie._fast.server.users import AuthenticatedUser


def test_a_user_of_nobody() -> None:
    """Nothing is counted before a login. Revoking is final, and may be repeated."""
    user = AuthenticatedUser()
    assert (user.connections, user.logins, user.refused, user.revoked) == (0, 0, 0, False)
    user.revoke()
    user.revoke()
    assert user.revoked


def test_rights_are_bits() -> None:
    """All rights together are ALL."""
    assert users.READ | users.WRITE | users.ADMIN == users.ALL
