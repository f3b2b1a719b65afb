"""A web service on a ledger: POST adds an event, GET streams all events. Needs `pip install fastapi uvicorn`.

python docs/examples/web_service.py zk+hierarchical://h1:2181/ledgers 8000
curl -d '{"order": 1}' http://127.0.0.1:8000/events
curl -N 'http://127.0.0.1:8000/events?first=0'

The client for asyncio runs on the event loop of the server. A reader that goes away ends its stream. A server that is
stopped ends all streams, and then closes the ledger.
"""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import StreamingResponse

from bookie.client.aio import BookKeeper, WriteHandle
from bookie.errors import BookKeeperError, IncorrectParameter


def service(uri: str) -> FastAPI:
    """Return the web service. It creates a ledger when it starts."""
    # With explicit LACs, readers get the last event within 100 ms, though no other one follows it.
    bk = BookKeeper(uri, explicitLacInterval=100)
    opened: list[WriteHandle] = []

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with bk, bk.create_ledger(ensemble_size=3, write_quorum_size=3, ack_quorum_size=2) as ledger:
            opened.append(ledger)
            yield

    app = FastAPI(title="events", lifespan=lifespan)

    @app.post("/events", status_code=201)
    async def add(request: Request) -> dict[str, int]:
        """Add an event. The response comes when it is stored on two bookies."""
        try:
            return {"id": await opened[0].append(await request.body())}
        except IncorrectParameter as error:  # the event is too large
            raise HTTPException(413, str(error)) from error
        except BookKeeperError as error:
            raise HTTPException(503, str(error)) from error

    @app.get("/events")
    async def events(first: int = 0) -> StreamingResponse:
        """Stream the events from `first` on, one a line, until the service stops."""
        return StreamingResponse(lines(first), media_type="application/x-ndjson")

    async def lines(first: int) -> AsyncIterator[bytes]:
        async with bk.open_ledger(opened[0].id, recovery=False) as reader:
            async for batch in reader.follow(first):
                yield b"".join(entry.payload + b"\n" for entry in batch)

    return app


if __name__ == "__main__":
    uvicorn.run(service(sys.argv[1]), host="127.0.0.1", port=int(sys.argv[2]), timeout_graceful_shutdown=1)
