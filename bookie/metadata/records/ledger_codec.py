"""The bytes of ledger metadata: versions 1, 2 and 3 as Apache BookKeeper writes them (docs/formats/metadata.md).

Pure functions; any thread. Version 3 is binary protobuf after a varint length, 2 is protobuf text, 1 is lines of
text.
"""

from typing import NoReturn

from google.protobuf.message import DecodeError

from bookie.errors import IncorrectParameter, MetadataSerializationError
from bookie.metadata.records.ledger_metadata import DigestType, LedgerMetadata, LedgerState, Segment
from bookie.pb.data_formats_pb2 import LedgerMetadataFormat

HEADER = b"BookieMetadataFormatVersion\t"
V1_IN_RECOVERY = -102
V1_CLOSED = "CLOSED"
NEW_LEDGER_BYTES_MAX = 1_000_000
"""The metadata of a ledger without ensemble changes have at most so many bytes. ZooKeeper accepts 1 MiB by default, and
closes the connection of the whole session otherwise; the rest is left for ensemble changes and the end of the ledger.
"""


def serialize_new_ledger(ledger_id: int, metadata: LedgerMetadata) -> bytes:
    """Serialize the metadata of a ledger that is created. Raises IncorrectParameter if they are too large, and the
    errors of `serialize_ledger`.
    """
    data = serialize_ledger(metadata)
    if len(data) > NEW_LEDGER_BYTES_MAX and len(metadata.segments) == 1:
        raise IncorrectParameter(
            f"ledger {ledger_id}: its metadata have {len(data)} bytes, at most {NEW_LEDGER_BYTES_MAX} are allowed: pass"
            " less custom metadata, or a shorter password"
        )
    return data


def serialize_ledger(metadata: LedgerMetadata) -> bytes:
    """Serialize metadata. Raises MetadataSerializationError if they are invalid, or do not fit their version."""
    problem = metadata.problem()
    if problem:
        raise MetadataSerializationError(f"ledger metadata is invalid: {problem}")
    match metadata.format_version:
        case 3:
            body = _to_message(metadata).SerializeToString()
            return HEADER + b"3\n" + _varint(len(body)) + body
        case 2:
            from google.protobuf import text_format  # noqa: PLC0415 - it is slow to import, and few commands need it

            text: str = text_format.MessageToString(_to_message(metadata))
            return HEADER + b"2\n" + text.encode()
        case 1:
            return HEADER + b"1\n" + _to_lines(metadata).encode()
        case version:
            raise MetadataSerializationError(f"ledger metadata version {version} is unknown: use 1, 2 or 3")


def parse_ledger(ledger_id: int, data: bytes) -> LedgerMetadata:
    """Parse metadata. Raises MetadataSerializationError with the ledger and what is wrong with `data`."""
    version, body = 1, data
    if data.startswith(HEADER):
        line, newline, body = data[len(HEADER) :].partition(b"\n")
        if not newline or not line.isdigit():
            _refuse(ledger_id, f"its first line is {data[:48]!r}")
        version = int(line)
    match version:
        case 3:
            metadata = _from_message(ledger_id, _parse_binary(ledger_id, body), 3)
        case 2:
            metadata = _from_message(ledger_id, _parse_text(ledger_id, body), 2)
        case 1:
            metadata = _from_lines(ledger_id, body)
        case _:
            _refuse(ledger_id, f"version {version} is newer than 3: upgrade this program")
    problem = metadata.problem()
    if problem:
        _refuse(ledger_id, problem)
    return metadata


def _refuse(ledger_id: int, why: str) -> NoReturn:
    raise MetadataSerializationError(f"metadata of ledger {ledger_id} cannot be read: {why}")


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _parse_binary(ledger_id: int, body: bytes) -> LedgerMetadataFormat:
    length = shift = at = 0
    while True:
        if at == len(body) or at == 5:
            _refuse(ledger_id, "the message length is cut")
        length |= (body[at] & 0x7F) << shift
        shift += 7
        at += 1
        if body[at - 1] < 0x80:
            break
    if length > len(body) - at:
        _refuse(ledger_id, f"the message has {len(body) - at} bytes of {length}")
    try:
        return LedgerMetadataFormat.FromString(body[at : at + length])
    except DecodeError as error:
        _refuse(ledger_id, f"not a protobuf message: {error}")


def _parse_text(ledger_id: int, body: bytes) -> LedgerMetadataFormat:
    from google.protobuf import text_format  # noqa: PLC0415

    try:
        return text_format.Parse(body, LedgerMetadataFormat(), allow_unknown_field=True)
    except (text_format.ParseError, UnicodeDecodeError) as error:
        _refuse(ledger_id, f"not protobuf text: {error}")


def _to_message(metadata: LedgerMetadata) -> LedgerMetadataFormat:
    message = LedgerMetadataFormat(
        quorumSize=metadata.write_quorum,
        ensembleSize=metadata.ensemble_size,
        length=metadata.length,
        lastEntryId=metadata.last_entry,
        state=metadata.state.name,
        digestType=None if metadata.digest_type is None else metadata.digest_type.name,
        password=None if metadata.digest_type is None else metadata.password,
        ackQuorumSize=metadata.ack_quorum,
        ctime=metadata.ctime_ms,
    )
    for segment in metadata.segments:
        message.segment.add(ensembleMember=segment.bookies, firstEntryId=segment.first_entry)
    for key, value in metadata.custom.items():
        message.customMetadata.add(key=key, value=value)
    if metadata.format_version == 3:
        message.cToken = metadata.token
    return message


def _from_message(ledger_id: int, message: LedgerMetadataFormat, version: int) -> LedgerMetadata:
    if not message.IsInitialized():
        lacking = message.FindInitializationErrors()  # type: ignore[attr-defined]  # not in the published types
        _refuse(ledger_id, f"it lacks {', '.join(lacking)}")
    if message.HasField("digestType") != message.HasField("password"):
        _refuse(ledger_id, "it has only one of digestType and password")
    closed = message.state == LedgerMetadataFormat.CLOSED
    if closed and not message.HasField("lastEntryId"):
        _refuse(ledger_id, "it is CLOSED without lastEntryId")
    return LedgerMetadata(
        ensemble_size=message.ensembleSize,
        write_quorum=message.quorumSize,
        ack_quorum=message.ackQuorumSize if message.HasField("ackQuorumSize") else message.quorumSize,
        segments=tuple(Segment(part.firstEntryId, tuple(part.ensembleMember)) for part in message.segment),
        state=LedgerState(message.state),
        length=message.length,
        last_entry=message.lastEntryId if message.HasField("lastEntryId") else -1,
        digest_type=DigestType(message.digestType) if message.HasField("digestType") else None,
        password=message.password,
        ctime_ms=message.ctime if message.HasField("ctime") else None,
        custom={pair.key: pair.value for pair in message.customMetadata},
        token=message.cToken,
        format_version=version,
    )


def _to_lines(metadata: LedgerMetadata) -> str:
    if metadata.digest_type is not None or metadata.custom or metadata.ack_quorum != metadata.write_quorum:
        raise MetadataSerializationError("ledger metadata version 1 holds no digest, custom field or ack quorum: use 3")
    lines = [str(metadata.write_quorum), str(metadata.ensemble_size), str(metadata.length)]
    lines += ["\t".join([str(segment.first_entry), *segment.bookies]) for segment in metadata.segments]
    if metadata.state is LedgerState.CLOSED:
        lines.append(f"{metadata.last_entry}\t{V1_CLOSED}")
    if metadata.state is LedgerState.IN_RECOVERY:
        lines.append(f"{V1_IN_RECOVERY}\t{V1_CLOSED}")
    if metadata.state is LedgerState.OPEN:
        lines.append("")  # only the last line of a closed ledger has no newline
    return "\n".join(lines)


def _from_lines(ledger_id: int, body: bytes) -> LedgerMetadata:
    state, last_entry = LedgerState.OPEN, -1
    segments = []
    try:
        write_quorum, ensemble_size, length, *rows = body.decode().split("\n")
        for row in filter(None, rows):
            first, *bookies = row.split("\t")
            if bookies == [V1_CLOSED]:
                in_recovery = int(first) == V1_IN_RECOVERY
                state = LedgerState.IN_RECOVERY if in_recovery else LedgerState.CLOSED
                last_entry = -1 if in_recovery else int(first)
            else:
                segments.append(Segment(int(first), tuple(bookies)))
        return LedgerMetadata(
            ensemble_size=int(ensemble_size),
            write_quorum=int(write_quorum),
            ack_quorum=int(write_quorum),
            segments=tuple(segments),
            state=state,
            length=int(length),
            last_entry=last_entry,
            format_version=1,
        )
    except ValueError as error:  # too few lines, an invalid number, or bytes that are not UTF-8
        _refuse(ledger_id, f"not the lines of version 1: {error}")
