"""V3 requests for hypothesis as somebody hostile or merely different might write them: every field in any order,
repeated, split over several messages, padded, of the wrong type, with groups and unknown numbers.
"""

from hypothesis import strategies as st

from bookie.pb import wire_pb2 as pb
from tests.reference.proto_wire import BYTES, FIXED32, GROUP, GROUP_END, VARINT, encode, field, tag
from tests.reference.wire_v3 import PARTS

NUMBERS = st.one_of(
    st.integers(0, 16),
    st.integers(0, 2**64 - 1),
    st.sampled_from([2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**32 + 1, 2**63, 2**64 - 1]),
)
FIELD_NUMBERS = st.sampled_from([*range(9), 16, 100, 100, 101, 200, 2**29 - 1])
KNOWN = {known.number: known.message_type.fields for known in pb.Request.DESCRIPTOR.fields if known.message_type}
"""Fields of the messages by their number in a request."""
PART_OF = {op: pb.Request.DESCRIPTOR.fields_by_name[name].number for op, name in PARTS.items()}


@st.composite
def odd_field(draw: st.DrawFn, depth: int = 0) -> bytes:
    """Draw a field of any number and type, at times padded or broken."""
    number, kind = draw(FIELD_NUMBERS), draw(st.sampled_from([VARINT, VARINT, BYTES, BYTES, GROUP, FIXED32, 1, 6]))
    out = tag(number, kind, draw(st.sampled_from([0, 0, 0, 5, 6])))
    if kind == VARINT:
        return out + encode(draw(NUMBERS), draw(st.sampled_from([0, 0, 0, 10, 11])))
    if kind == BYTES:
        body = draw(st.binary(max_size=6))
        return out + encode(len(body) + draw(st.sampled_from([0, 0, 0, 0, 1])), draw(st.integers(0, 5))) + body
    if kind == GROUP and depth < 3:
        inner = b"".join(draw(st.lists(odd_field(depth + 1), max_size=2)))
        return out + inner + tag(draw(st.sampled_from([number, number, number, 3])), GROUP_END)
    return out + draw(st.binary(min_size=4, max_size=8))


@st.composite
def own_field(draw: st.DrawFn, number: int, *, is_bytes: bool) -> bytes:
    """Draw a field of the message, with the type that it should have."""
    if is_bytes:
        return field(number, draw(st.binary(max_size=30)))
    value = draw(NUMBERS)
    return tag(number, VARINT) + encode(value, draw(st.sampled_from([0, 0, 0, 0, 10])))


@st.composite
def message(draw: st.DrawFn, part: int) -> list[bytes]:
    """Draw the fields of one message: all that it requires most of the time, in any order, some twice, others added."""
    fields = []
    for known in KNOWN[part]:
        is_bytes = known.type in (known.TYPE_BYTES, known.TYPE_STRING)
        kept = draw(st.integers(0, 40)) if known.is_required else draw(st.integers(0, 1))
        if kept and known.enum_type is not None and draw(st.integers(0, 8)):
            values = [value.number for value in known.enum_type.values]
            fields.append(field(known.number, draw(st.sampled_from(values))))
        elif kept:
            fields.append(draw(own_field(known.number, is_bytes=is_bytes)))
        if draw(st.integers(0, 7)) == 0:
            fields.append(draw(own_field(known.number, is_bytes=is_bytes)))
    if draw(st.integers(0, 4)) == 0:
        fields += draw(st.lists(odd_field(), max_size=2))
    return draw(st.permutations(fields))


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    """Draw the body of a frame: a header, mostly the message of its operation, others, contexts, odd fields."""
    op = draw(st.sampled_from([*PARTS, 3, 4, 0, 14]))
    txn, priority = draw(NUMBERS), draw(st.sampled_from([None, 0, 100, 2**32]))
    header = [field(1, draw(st.sampled_from([3, 3, 3, 1, 2, 4]))), field(2, op), field(3, txn)]
    header += [] if priority is None else [field(4, priority)]
    wanted = [PART_OF[op]] * draw(st.sampled_from([1, 1, 1, 0, 2])) if op in PARTS else []
    wanted += draw(st.lists(st.sampled_from([*KNOWN, 200]), max_size=2))
    frames = [field(1, b"".join(header[:cut])) + field(1, b"".join(header[cut:])) for cut in [draw(st.integers(0, 4))]]
    for part in wanted:
        fields = draw(message(part))
        cut = draw(st.integers(0, len(fields))) if draw(st.integers(0, 3)) == 0 else len(fields)
        frames.append(field(part, b"".join(fields[:cut])))
        if cut < len(fields):
            frames.append(field(part, b"".join(fields[cut:])))
    if draw(st.integers(0, 5)) == 0:
        frames.append(draw(odd_field()))
    return b"".join(draw(st.permutations(frames)))
