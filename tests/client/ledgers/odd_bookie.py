"""A V2 bookie that misbehaves as a test says: an asyncio server on loopback, on the reader's own event loop."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from tests.reference import wire_v2 as model

Answer = Callable[[model.Request], bytes | None]
"""The bytes of a response, which may be empty; None closes the connection, and `TORN` before them closes it after."""


@asynccontextmanager
async def odd_bookie(answer: Answer) -> AsyncIterator[str]:
    """Yield the bookie's id while it serves."""
    serving: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        serving.add(task)
        try:
            while True:
                body = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
                status, request = model.decode_request(body)
                assert status == model.OK
                assert request is not None
                data = answer(request)
                if data is None:
                    break
                torn = data.startswith(TORN)
                writer.write(data.removeprefix(TORN))
                await writer.drain()
                if torn:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            serving.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in list(serving):
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)


TORN = b"torn answer:"


def batch(request: model.Request, body: bytes) -> bytes:
    """Return a response to a batch read with any content."""
    return model.encode_response(
        model.Response(model.BATCH_READ, 0, request.ledger, request.entry, request.request_id, body)
    )


def single(request: model.Request, stored: bytes | None) -> bytes:
    """Return a response to a read; None means that the entry does not exist."""
    code = 0 if stored is not None else 2
    return model.encode_response(model.Response(model.READ, code, request.ledger, request.entry, body=stored or b""))
