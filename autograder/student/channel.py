"""The line between a kernel and the judge: packed values, each behind its length.

The kernel inherits its end as an open descriptor, so there is no socket file that others could
reach. The kernel's side only evaluates: it is sent questions and sends responses, and learns no
verdict.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import Any

from autograder.student.cases import parse_question, to_data
from autograder.student.evaluation import Evaluator, kept_modes
from autograder.student.tensors import MalformedData, pack, unpack

DESCRIPTOR_VARIABLE = "AUTOGRADER_JUDGE_DESCRIPTOR"
LARGEST_MESSAGE = 32 * 2**20  # bytes


class ChannelClosed(ConnectionError):
    """The other side is gone."""


class OutOfStep(MalformedData):
    """What came cannot be read, nor can what comes after it."""


class Channel:
    """One end of the line; `seconds` bounds each wait for a message (None: no bound)."""

    def __init__(self, end: socket.socket, seconds: float | None = None) -> None:
        self.end = end
        self.end.settimeout(seconds)
        self.messages = self.bytes = 0  # that came

    @classmethod
    def inherited(cls) -> Channel | None:
        """The end that this process was started with, if it was."""
        descriptor = os.environ.get(DESCRIPTOR_VARIABLE)
        # A copy: a notebook may load its check twice, and what is dropped closes its own.
        return cls(socket.socket(fileno=os.dup(int(descriptor)))) if descriptor else None

    def send(self, message: dict[str, Any]) -> None:
        data = pack(message)
        if len(data) > LARGEST_MESSAGE:
            raise MalformedData(f"a message of {len(data)} bytes is too long")
        try:
            self.end.sendall(len(data).to_bytes(8, "little") + data)
        except OSError as error:
            raise ChannelClosed(str(error)) from error

    def receive(self) -> dict[str, Any]:
        """The next message; ChannelClosed, TimeoutError or MalformedData where none comes.

        After MalformedData, but not after OutOfStep, the next one can be read.
        """
        length = int.from_bytes(self._read(8), "little")
        if length > LARGEST_MESSAGE:
            raise OutOfStep(f"a message of {length} bytes is announced, which is too long")
        self.messages, self.bytes = self.messages + 1, self.bytes + length
        message = unpack(self._read(length))
        if not isinstance(message, dict) or not isinstance(message.get("type"), str):
            raise MalformedData("a message without a type")
        return message

    def _read(self, length: int) -> bytes:
        data = bytearray()
        while len(data) < length:
            try:
                chunk = self.end.recv(min(length - len(data), 2**20))
            except TimeoutError:
                raise
            except OSError as error:
                raise ChannelClosed(str(error)) from error
            if not chunk:
                raise ChannelClosed("the other side closed the line")
            data += chunk
        return bytes(data)

    def close(self) -> None:
        self.end.close()


def answer_questions(channel: Channel, exercise: str, answer: Callable[..., Any]) -> bool:
    """Offer `answer` to the judge and respond until it has no further question.

    False where the answer ran out of time, which is all that is known of it here.
    """
    channel.send({"type": "offer", "exercise": exercise})
    message = channel.receive()
    if message["type"] != "begin":
        return True
    evaluator = Evaluator(answer, message["banned"], message["time_limit"])
    message = channel.receive()
    with kept_modes():
        while message["type"] == "question":
            response = evaluator(parse_question(message["question"]))
            channel.send({"type": "response", "response": to_data(response)})
            message = channel.receive()
    return evaluator.clock.left() > 0
