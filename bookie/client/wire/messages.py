"""V3 messages to frames and back, through the protobuf library. Bulk data take another way."""

from typing import TypeVar

from google.protobuf.message import DecodeError, Message
from typing_extensions import Buffer

M = TypeVar("M", bound=Message)

FRAME_PREFIX = 4


def framed(message: Message) -> bytes:
    """Return the frame of a message, with its length prefix."""
    body = message.SerializeToString()
    return len(body).to_bytes(FRAME_PREFIX, "big") + body


def parsed(kind: type[M], data: Buffer) -> M:
    """Parse a message. Raises ValueError if the bytes are invalid or lack a required field."""
    message = kind()
    try:
        message.ParseFromString(bytes(data))
    except DecodeError as error:
        raise ValueError(str(error)) from error
    return message
