"""Judging plain Python files, each in its own process forked from one that has imported torch."""

from __future__ import annotations

import io
import multiprocessing
import os
import resource
import socket
import sys
import threading
import tokenize
import types
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path

from autograder.course import usable_cores
from autograder.runner.session import GRACE, Session
from autograder.student.cases import CaseSet, Raised, Response
from autograder.student.channel import Channel, ChannelClosed, answer_questions
from autograder.student.evaluation import PATIENCE, Clock, describe, silence, time_limit
from autograder.student.verdicts import Verdict

LOAD_LIMIT = 30.0  # seconds to run a file's top level
MEMORY_LIMIT = 4 * 2**30  # bytes of data that a file's process may hold
_starting = threading.Lock()


def try_files(
    cases: CaseSet, files: list[Path], workers: int | None = None
) -> Iterator[tuple[Path, list[Verdict]]]:
    """Each file with its verdicts, in the order given; none sees what another does."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["autograder.runner.warm"])
    with ThreadPoolExecutor(workers or usable_cores()) as pool:
        judged = pool.map(lambda file: try_file(context, cases, file), files)
        yield from zip(files, judged, strict=True)


def try_file(context: ForkServerContext, cases: CaseSet, file: Path) -> list[Verdict]:
    """The verdicts on one file. An exercise that kills its process costs itself alone."""
    remaining = list(cases.specs)
    responses: dict[str, list[Response]] = {}
    while remaining:
        session = _run(context, cases, file, remaining)
        if session.load_error is not None:
            responses = {}
            break
        responses.update(session.responses)
        if not session.died_in:
            break
        remaining = remaining[remaining.index(session.died_in) + 1 :]
    return session.verdicts_on(responses)


class _FileSession(Session):
    """A session with a process that loads a file and offers what it finds in it."""

    finished = False

    @property
    def died_in(self) -> str | None:
        """The exercise during which the process ended, if it did not get through."""
        return None if self.finished or not self.responses else list(self.responses)[-1]

    def _answer(self, message: dict[str, object]) -> None:
        if message["type"] == "finished":
            self.finished = True
            raise ChannelClosed("the file is through")  # a thread of its may keep the line open
        else:
            super()._answer(message)

    def verdicts_on(self, responses: dict[str, list[Response]]) -> list[Verdict]:
        self.responses = responses
        return self.verdicts()


def _run(
    context: ForkServerContext, cases: CaseSet, file: Path, exercises: list[str]
) -> _FileSession:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        with _starting:  # starting processes is not thread-safe
            process = context.Process(target=_offer, args=(theirs, str(file), exercises))
            process.start()
        theirs.close()
        channel = Channel(ours, PATIENCE * LOAD_LIMIT + GRACE)
        session = _FileSession(channel, cases, any_exercise=True)
        session.serve()
    _end(process)
    if not session.finished and not session.responses and session.load_error is None:
        session.load_error = Raised("ProcessEnded", "the file ended the process as it was loaded")
    return session


def _end(process: BaseProcess) -> None:
    process.kill()  # it has said what it had to say, and might take its time to leave
    process.join()
    process.close()


def _offer(end: socket.socket, file: str, exercises: list[str]) -> None:
    """In the child: load the file and offer its answers."""
    _be_quiet_and_small()
    channel = Channel(end)
    module = types.ModuleType("answers")
    module.__file__ = file
    sys.modules["answers"] = module
    try:
        source = text_of_file(Path(file))
        with time_limit(Clock(LOAD_LIMIT)), silence():
            code = compile(source, file, "exec", dont_inherit=True)
            exec(code, module.__dict__)
    except BaseException as error:
        raised = describe(error)
        channel.send(
            {
                "type": "load-error",
                "error": raised.type,
                "text": raised.message,
                "line": raised.line,
                "where": raised.where,
            }
        )
        return
    try:
        for exercise in exercises:
            name = exercise.partition(".")[0]
            if name in module.__dict__:
                answer_questions(channel, exercise, module.__dict__[name])
        channel.send({"type": "finished"})
    except ChannelClosed:
        return


def text_of_file(file: Path) -> str:
    """As a notebook would hold it: a comment such as `# positional_encoding: ...` is no more than
    that, though Python takes the first line of a file with `coding:` in it for an encoding."""
    data = file.read_bytes()
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError:
        encoding = "utf-8-sig"
    return data.decode(encoding)


def _be_quiet_and_small() -> None:
    """Nothing that an answer writes reaches the command's output, however it is written, and one
    that asks for too much memory gets a MemoryError."""
    sink = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(sink, descriptor)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_LIMIT, MEMORY_LIMIT))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
