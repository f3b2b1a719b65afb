"""The requests that peers of a world send, in V2 and V3, and what they make of responses. No sockets here."""

import struct

from google.protobuf.message import DecodeError

from bookie.pb import wire_pb2 as pb
from tests.engine.entries import KEY
from tests.reference import wire_v2 as v2
from tests.reference.wire_v3_answers import framed

OK, NO_LEDGER, NO_ENTRY, OTHER = 0, 1, 2, 100
CODES = {pb.EOK: OK, pb.ENOLEDGER: NO_LEDGER, pb.ENOENTRY: NO_ENTRY}
LAST = -1
LENGTH = struct.Struct(">I")
HEAD = struct.Struct(">II")
READ_HEAD = struct.Struct(">IIqq")
BATCH_FRAME = struct.Struct(">IIqqqiq")
ANSWER_HEAD = struct.Struct(">Iiqq")
NUMBER = struct.Struct(">q")
IDS = struct.Struct(">qq")

ADD_WORD, READ_WORD, BATCH_WORD = (2 << 24 | op << 16 for op in (v2.ADD, v2.READ, v2.BATCH_READ))
"""The first word of a request without flags, and of its answer."""

Key = tuple[int, ...]
"""What a response is recognised by: the transaction in V3; operation, ledger and entry in V2."""


class Answer:
    """A response: its request, a code (other errors are OTHER plus the wire's code), and the entries it carries."""

    def __init__(self, key: Key, code: int, entries: tuple[bytes, ...] = ()) -> None:
        self.key = key
        self.code = code
        self.entries = entries


def records(run: bytes) -> tuple[bytes, ...]:
    """Return the entries of a batch response of V2. Raises ValueError if it is torn."""
    found, at = [], 0
    while at < len(run):
        (size,) = LENGTH.unpack_from(run, at)
        if size > len(run) - at - 4:
            raise ValueError(f"an entry of {size} bytes at {at} of {len(run)}")
        found.append(run[at + 4 : at + 4 + size])
        at += 4 + size
    return tuple(found)


def _unusual(body: bytes) -> Answer:
    """Return what a frame says that is no answer of the second version to an add or a read."""
    response = v2.decode_response(body)
    if response is None:
        raise ValueError(f"no response: {body[:40].hex()}")
    batch = response.op == v2.BATCH_READ
    key = (response.op, response.request_id) if batch else (response.op, response.ledger, response.entry)
    code = response.code if response.code in (OK, NO_LEDGER, NO_ENTRY) else OTHER + response.code
    if code != OK or response.op == v2.ADD:
        return Answer(key, code)
    return Answer(key, code, records(response.body) if batch else (response.body,))


class V2:
    """The second protocol. A key can be used by one request at a time."""

    def add(self, entry: bytes, *, recovery: bool) -> tuple[Key, bytes]:
        ledger, number = IDS.unpack_from(entry)
        word = ADD_WORD | (v2.RECOVERY_ADD if recovery else 0)
        return (v2.ADD, ledger, number), HEAD.pack(4 + len(KEY) + len(entry), word) + KEY + entry

    def read(self, ledger: int, entry: int, *, fence: bool = False) -> tuple[Key, bytes]:
        if fence:
            frame = READ_HEAD.pack(20 + len(KEY), READ_WORD | v2.FENCE, ledger, entry) + KEY
        else:
            frame = READ_HEAD.pack(20, READ_WORD, ledger, entry)
        return (v2.READ, ledger, entry), frame

    def batch(self, ledger: int, start: int, count: int, size: int, number: int) -> tuple[Key, bytes]:
        return (v2.BATCH_READ, number), BATCH_FRAME.pack(40, BATCH_WORD, ledger, start, number, count, size)

    def answer(self, body: bytes) -> Answer:
        """Return what a frame says. Raises ValueError if it is no response."""
        if len(body) < 24 or body[0] not in (0, 2):
            return _unusual(body)
        word, code, ledger, entry = ANSWER_HEAD.unpack_from(body)
        code = code if code in (OK, NO_LEDGER, NO_ENTRY) else OTHER + code
        if word == ADD_WORD:
            return Answer((v2.ADD, ledger, entry), code)
        if word == READ_WORD:
            return Answer((v2.READ, ledger, entry), code, (body[24:],) if code == OK else ())
        if word == BATCH_WORD and len(body) >= 32:
            key = (v2.BATCH_READ, NUMBER.unpack_from(body, 24)[0])
            return Answer(key, code, records(body[32:]) if code == OK else ())
        return _unusual(body)


class V3:
    """The third protocol, whose responses name a transaction."""

    def __init__(self) -> None:
        self._transaction = 0

    def _framed(self, request: pb.Request, operation: "pb.OperationType") -> tuple[Key, bytes]:
        self._transaction += 1
        request.header.version = pb.VERSION_THREE
        request.header.operation = operation
        request.header.txnId = self._transaction
        return (self._transaction,), framed(request.SerializeToString())

    def add(self, entry: bytes, *, recovery: bool) -> tuple[Key, bytes]:
        ledger, number = IDS.unpack_from(entry)
        part = pb.AddRequest(ledgerId=ledger, entryId=number, masterKey=KEY, body=entry)
        if recovery:
            part.flag = pb.AddRequest.RECOVERY_ADD
        return self._framed(pb.Request(addRequest=part), pb.ADD_ENTRY)

    def read(self, ledger: int, entry: int, *, fence: bool = False) -> tuple[Key, bytes]:
        part = pb.ReadRequest(ledgerId=ledger, entryId=entry)
        if fence:
            part.flag = pb.ReadRequest.FENCE_LEDGER
            part.masterKey = KEY
        return self._framed(pb.Request(readRequest=part), pb.READ_ENTRY)

    def batch(self, ledger: int, start: int, count: int, size: int, _number: int) -> tuple[Key, bytes]:
        part = pb.BatchReadRequest(ledgerId=ledger, startEntryId=start, maxCount=count, maxSize=size)
        return self._framed(pb.Request(batchReadRequest=part), pb.BATCH_READ_ENTRY)

    def answer(self, body: bytes) -> Answer:
        """Return what a frame says. Raises ValueError if it is no response."""
        try:
            response = pb.Response.FromString(body)
        except DecodeError as error:
            raise ValueError(f"no response ({error}): {body[:40].hex()}") from error
        key = (response.header.txnId,)
        code = CODES.get(response.status, OTHER + response.status)
        if code != OK:
            return Answer(key, code)
        if response.header.operation == pb.READ_ENTRY:
            return Answer(key, code, (response.readResponse.body,))
        if response.header.operation == pb.BATCH_READ_ENTRY:
            return Answer(key, code, tuple(response.batchReadResponse.body))
        return Answer(key, code)


class Frames:
    """Cuts a stream into the bodies of its frames."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Take over received bytes, and return the bodies that are whole now."""
        self._held += data
        bodies, at = [], 0
        while len(self._held) - at >= 4:
            (size,) = LENGTH.unpack_from(self._held, at)
            if size > len(self._held) - at - 4:
                break
            bodies.append(bytes(self._held[at + 4 : at + 4 + size]))
            at += 4 + size
        del self._held[:at]
        return bodies
