"""Users as Python holds them: what is counted, and revoked for good. Over sockets: tests/hostile/test_rights.py."""

from bookie._fast.server import users
from bookie._fast.server.users import AuthenticatedUser


def test_a_user_of_nobody() -> None:
    """Nothing is counted before a login; revoking is final, and twice is fine."""
    user = AuthenticatedUser()
    assert (user.connections, user.logins, user.refused, user.revoked) == (0, 0, 0, False)
    user.revoke()
    user.revoke()
    assert user.revoked


def test_rights_are_bits() -> None:
    """All of them together are everything."""
    assert users.READ | users.WRITE | users.ADMIN == users.ALL
