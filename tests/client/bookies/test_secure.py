"""Encryption and authentication of the asyncio client's connections, against bookies in this process."""

import asyncio
import random
import ssl
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bookie.auth.settings import AuthSettings
from bookie.auth.token import TokenClient, server
from bookie.client import Tls
from bookie.client.bookies import BookieClient
from bookie.client.bookies.connect import Connector
from bookie.client.config import ClientConfig
from bookie.errors import BookieUnavailable, BookKeeperError, ConfigurationError, SecurityError, UnauthorizedAccess
from bookie.metadata.bookies.service_info import OUR_PROPERTIES, BookieServiceInfo, bookie_endpoint
from tests.client.bookies.senders import DIGEST, Owner, sealed
from tests.fixtures.certificates import Authority
from tests.hostile.local import LocalBookie, local_bookie
from tests.hostile.tls_peer import settings_of
from tests.reference import record as entries

KEY = DIGEST.master_key
MIB = 1 << 20
ROOM: dict[str, Any] = {"write_cache_bytes": 64 << 20, "buffer_bytes": 16 << 20}
BOTH = pytest.mark.parametrize("v2", [True, False], ids=["V2", "V3"])


@pytest.fixture(scope="module")
def ca(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The authority of the certificates of the bookie and its clients."""
    return Authority(tmp_path_factory.mktemp("ca"))


def with_client(
    bookie: LocalBookie,
    connector: Connector | None,
    work: Callable[[BookieClient], Coroutine[Any, Any, None]],
    *,
    host: str = "localhost",
    **settings: Any,
) -> None:
    """Run `work` with a client that knows `bookie`."""

    async def registered(_: str) -> bytes:
        return BookieServiceInfo((bookie_endpoint(host, bookie.address[1]),), OUR_PROPERTIES).to_bytes()

    async def main() -> None:
        config = ClientConfig(read_timeout_s=60, add_timeout_s=60, **settings)
        async with BookieClient(config, registered, connector=connector) as client:
            await work(client)

    asyncio.run(main())


@pytest.mark.leaks("asyncio looks `localhost` up in a thread that it keeps")
def test_certificates_are_read_once_beside_the_loop(
    tmp_path: Path, ca: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One SSL context serves all connections until one of its files changes, and is made off the event loop."""
    made: list[int] = []
    real = Tls.context

    def counted(self: Tls) -> ssl.SSLContext:
        made.append(threading.get_ident())
        return real(self)

    monkeypatch.setattr(Tls, "context", counted)
    party = ca.issue("bookie", hosts=["localhost"])
    trust = tmp_path / "trust.pem"
    trust.write_bytes(ca.certificate.read_bytes())

    async def work(client: BookieClient) -> None:
        for ledger in range(3):
            with pytest.raises(BookKeeperError):
                await client.read("bookie:1", ledger, 0)
        assert len(made) == 1
        await asyncio.to_thread(trust.write_bytes, ca.certificate.read_bytes() + b"\n")
        with pytest.raises(BookKeeperError):
            await client.read("bookie:1", 3, 0)
        assert len(made) == 2
        assert threading.get_ident() not in made

    with local_bookie(tmp_path / "bookie", tls=settings_of(party), **ROOM) as one:
        with_client(one, None, work, tls_trust_store=str(trust), channels_per_bookie=4)


@BOTH
@pytest.mark.leaks("asyncio looks `localhost` up in a thread that it keeps")
def test_large_batches(tmp_path: Path, ca: Authority, *, v2: bool) -> None:
    """BR14, B21: 20 MB go in and out through TLS, in batches of 5 MB on one connection; every digest is verified."""
    seeded_random = random.Random(1)
    payloads = [seeded_random.randbytes(seeded_random.randrange(20_000)) for _ in range(2000)]
    packed = [entries.pack([sealed(7, entry, payload)]) for entry, payload in enumerate(payloads)]
    offsets = np.cumsum([0, *map(len, packed)], dtype=np.int64)
    run = b"".join(packed)
    client_party = ca.issue("client")
    settings = {
        "tls_trust_store": str(ca.certificate),
        "tls_certificate": str(client_party.certificate),
        "tls_key": str(client_party.key),
    }

    async def work(client: BookieClient) -> None:
        owner = Owner()
        sender = client.adds("one", 7, KEY, owner)
        for start in range(0, 2000, 50):
            sender.send(run, offsets[start : start + 51], np.arange(start, start + 50, dtype=np.int64))
            await owner.until(start - 500)
        await owner.until(2000)
        assert set(map(tuple, owner.codes.values())) == {(0,)}
        batches = [await client.batch_read("one", 7, start, 500, 5 * MIB) for start in range(0, 2000, 400)]
        assert max(len(batch.buffer) for batch in batches) > 4 * MIB
        for batch in batches:
            batch.verify(DIGEST)
            assert all(payload == payloads[entry] for entry, payload in batch.payloads(DIGEST))

    party = ca.issue("bookie", hosts=["localhost"])
    with local_bookie(tmp_path, tls=settings_of(party, trust=ca.certificate), **ROOM) as bookie:
        with_client(bookie, None, work, use_v2_wire_protocol=v2, **settings)


def refused(bookie: LocalBookie, connector: Connector, *, host: str = "localhost", v2: bool = True) -> BookKeeperError:
    """Return the error of a read and of a sender, which must have the same class."""
    found: list[BookKeeperError] = []

    async def work(client: BookieClient) -> None:
        owner = Owner()
        client.adds("one", 7, KEY, owner)
        with pytest.raises(BookKeeperError) as error:
            await client.read("one", 7, 0)
        await owner.until(1)
        assert [type(lost) for lost in owner.errors] == [type(error.value)]
        found.append(error.value)

    with_client(bookie, connector, work, host=host, use_v2_wire_protocol=v2)
    return found[0]


@pytest.mark.leaks("asyncio looks `localhost` up in a thread that it keeps")
def test_who_is_not_trusted(tmp_path: Path, ca: Authority) -> None:
    """S3: a wrong name, authority or file, or a missing certificate or TLS, is an error, and nothing is sent."""
    party, client = ca.issue("bookie", hosts=["localhost"]), ca.issue("client")
    other = Authority(tmp_path / "other", "another authority")

    def tls(**options: Any) -> Connector:
        given = {"trust_store": ca.certificate, "certificate": client.certificate, "key": client.key, **options}
        return Connector(60, Tls(**given))

    with local_bookie(tmp_path / "one", tls=settings_of(party, trust=ca.certificate), **ROOM) as bookie:
        error = refused(bookie, tls(), host="127.0.0.1")
        assert isinstance(error, SecurityError)
        assert "certificate was rejected" in str(error)
        assert isinstance(refused(bookie, tls(trust_store=other.certificate)), SecurityError)
        # with TLSv1.3 the client finishes the handshake before the bookie checks its certificate
        assert isinstance(refused(bookie, tls(certificate=None)), SecurityError | BookieUnavailable)
        assert isinstance(refused(bookie, tls(trust_store=tmp_path / "nowhere")), ConfigurationError)
    with local_bookie(tmp_path / "two") as plain:
        error = refused(plain, tls())
        assert isinstance(error, SecurityError)
        assert "is TLS configured there" in str(error)


@BOTH
def test_authentication(tmp_path: Path, *, v2: bool) -> None:
    """The token is sent first; without the right one nothing is served; requests made meanwhile wait."""
    token = tmp_path / "token"
    token.write_text("correct horse battery staple\n")

    async def work(client: BookieClient) -> None:
        adds = (client.add("one", 7, entry, sealed(7, entry, b"x"), KEY) for entry in range(10))
        await asyncio.gather(*adds)
        assert (await client.read("one", 7, 3)).entry == 3
        assert (await client.bookie_info("one")).total > 0

    provider = server(AuthSettings(token_file=str(token)))
    with local_bookie(tmp_path, provider=provider) as bookie:
        good = Connector(60, auth=TokenClient(b"correct horse battery staple"))
        with_client(bookie, good, work, host="127.0.0.1", use_v2_wire_protocol=v2)
        wrong = Connector(60, auth=TokenClient(b"wrong"))
        error = refused(bookie, wrong, host="127.0.0.1", v2=v2)
        assert isinstance(error, UnauthorizedAccess | BookieUnavailable)
        assert "wrong" not in str(error)
