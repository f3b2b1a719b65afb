"""Test many single reads on the wire: requests equal those written one by one, and responses are protobuf's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookie._fast.client import framing_v2, single_reads
from bookie.client.wire.messages import framed
from bookie.client.wire.requests_v3 import read
from bookie.pb import wire_pb2 as pb

I63 = st.integers(0, 2**63 - 1)


@given(I63, st.lists(I63, max_size=20), st.integers(1, 2**40))
def test_requests(ledger: int, entries: list[int], transaction: int) -> None:
    """Many requests at once have the bytes of single ones."""
    wanted = np.array(entries, dtype=np.int64)
    one_by_one = [framing_v2.read_frame(ledger, entry) for entry in entries]
    assert single_reads.requests_v2(ledger, wanted).tobytes() == b"".join(one_by_one)
    messages = [framed(read(transaction + k, ledger, entry, 0, None)) for k, entry in enumerate(entries)]
    assert single_reads.requests_v3(ledger, wanted, transaction).tobytes() == b"".join(messages)


@given(st.none() | st.binary(max_size=300), st.none() | st.integers(-1, 2**63 - 1), st.data())
def test_v3_answers(body: bytes | None, lac: int | None, data: st.DataObject) -> None:
    """Entry and LAC are those in the response of the protobuf library, and a torn response is refused."""
    header = pb.BKPacketHeader(version=pb.VERSION_THREE, operation=pb.READ_ENTRY, txnId=3)
    part = pb.ReadResponse(status=pb.EOK, ledgerId=7, entryId=5, lacUpdateTimestamp=9)
    if body is not None:
        part.body = body
    if lac is not None:
        part.maxLAC = lac
    whole = pb.Response(header=header, status=pb.EOK, readResponse=part).SerializeToString()
    assert single_reads.entry_of(whole) == (body, lac)
    torn = whole[: data.draw(st.integers(0, len(whole) - 1))]
    with pytest.raises(ValueError, match="holds no ReadResponse"):
        single_reads.entry_of(torn)
