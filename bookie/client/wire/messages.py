"""V3 messages as frames and back, through the protobuf library: everything that is not bulk."""

from typing import TypeVar

from google.protobuf.message import DecodeError, Message
from typing_extensions import Buffer

M = TypeVar("M", bound=Message)

FRAME_PREFIX = 4


def framed(message: Message) -> bytes:
    """The whole frame of a message."""
    body = message.SerializeToString()
    return len(body).to_bytes(FRAME_PREFIX, "big") + body


def parsed(kind: type[M], data: Buffer) -> M:
    """The message in `data`. ValueError when there is none, or one without its required fields."""
    message = kind()
    try:
        message.ParseFromString(bytes(data))
    except DecodeError as error:
        raise ValueError(str(error)) from error
    return message
