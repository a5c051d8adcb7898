"""Running one notebook in a kernel beside the judge: data in, data out, no database."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import (
    AbstractContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
    nullcontext,
)
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.manager import AsyncKernelManager
from jupyter_core.utils import run_sync
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from nbformat.v4 import new_output

from autograder.course import GradingOptions, check_id, grade_id_of
from autograder.runner.flags import REFUSED, Flags, note_claims, note_source
from autograder.runner.kernels import (
    Started,
    TolerantKernelClient,
    WarmKernelManager,
    the_nursery,
)
from autograder.runner.pictures import NOT_DRAWN, handed_in, put_in_place
from autograder.runner.sandbox import Limits
from autograder.runner.session import GRACE, Session, conclude, patience_with
from autograder.student.cases import CaseSet, Response
from autograder.student.channel import DESCRIPTOR_VARIABLE, Channel
from autograder.student.check import text_of
from autograder.student.judge import in_time
from autograder.student.verdicts import FAILED, Verdict

_log = logging.getLogger("autograder.kernel")
_log.setLevel(logging.CRITICAL)  # nbclient logs what we report ourselves
MOST_KERNELS = 6  # for one notebook; each one that dies costs the cell that killed it
AFTER_TOO_SLOW = 20.0  # seconds for a cell that names what was too slow: it would be so again
MOST_LOST = 3  # of them, for reasons that are not the notebook's


Turn = AbstractContextManager[Any]


class KernelLost(Exception):
    """A kernel ended because what keeps it did: nothing that its notebook could have done."""


@dataclass(frozen=True)
class RunLimits:
    """Of one notebook: seconds of wall time, characters of output, and what its kernel may hold
    (None: it runs without a sandbox)."""

    cell: float = 90.0
    notebook: float = 900.0
    output: int = 1_000_000
    kernel: Limits | None = None
    exercise: float = math.inf
    figures: bool = False  # whether they are drawn

    @classmethod
    def of(cls, options: GradingOptions) -> RunLimits:
        kernel = Limits.of(options) if options.sandbox else None
        return cls(
            options.cell_timeout,
            options.notebook_timeout,
            options.output_limit,
            kernel,
            options.exercise_timeout or math.inf,
            options.draw_figures,
        )


@dataclass
class NotebookRun:
    """A notebook that is being run, with what the judge has of it."""

    notebook: NotebookNode
    secret: CaseSet
    public: bytes
    limits: RunLimits
    files: dict[str, bytes]
    responses: dict[str, list[Response]] = field(default_factory=dict)
    lethal: set[int] = field(default_factory=set)  # indices of cells that killed a kernel
    troubles: list[str] = field(default_factory=list)
    seconds: dict[str, list[float]] = field(default_factory=dict)  # of each answer, by exercise
    flags: Flags = field(default_factory=Flags)
    ended: set[int] = field(default_factory=set)  # indices of cells that ran to their end
    ends: float = math.inf  # by time.monotonic()
    turn: Turn = field(default_factory=nullcontext)  # held while cells run
    _judged: list[Verdict] | None = None

    @property
    def exercise_of(self) -> dict[str, str]:
        return {check_id(name): name for name in self.secret.specs}

    def verdicts(self) -> list[Verdict]:
        return self._judged if self._judged is not None else self._judge()

    def _judge(self) -> list[Verdict]:
        return [
            self._unanswered(verdict) if verdict.exercise not in self.responses else verdict
            for verdict in conclude(self.secret, self.responses)
        ]

    @property
    def too_slow(self) -> list[str]:
        """The exercises of which an answer did not come in time."""
        return [name for name, given in self.responses.items() if given and not in_time(given[-1])]

    @property
    def met_limit(self) -> bool:
        """Whether other limits might have let it end in another way."""
        outputs = [output for cell in self.notebook.cells for output in cell.get("outputs", [])]
        return (
            bool(self.troubles)
            or any(_tells_of_a_limit(output) for output in outputs)
            or any(verdict.diagnosis == "too-slow" for verdict in self.verdicts())
        )

    def _unanswered(self, verdict: Verdict) -> Verdict:
        """Why no answer came: the name is not defined, or the check itself did not run."""
        error = self._error_of(check_id(verdict.exercise))
        if error is None:
            reason = "it did not ask for one; was `check` replaced?"
        elif error.ename == "NameError" and self._answer_to(verdict.exercise) in error.evalue:
            return verdict
        else:
            reason = f"it ended with {error.ename}: {error.evalue[:200]}"
        text = f"The check cell gave no answer to judge: {reason}"
        return replace(verdict, status=FAILED, diagnosis="raised", message=text)

    def _answer_to(self, exercise: str) -> str:
        """The name that the exercise's check cell hands to the judge, in quotes."""
        cells = [cell for cell in self.notebook.cells if grade_id_of(cell) == check_id(exercise)]
        found = re.search(r"check\(.*, (\w+)\)", cells[0].source) if cells else None
        return f"'{found[1] if found else exercise}'"

    def _error_of(self, name: str) -> NotebookNode | None:
        cells = [cell for cell in self.notebook.cells if grade_id_of(cell) == name]
        outputs = [output for cell in cells for output in cell.get("outputs", [])]
        return next((output for output in outputs if output.output_type == "error"), None)


def run_notebook(
    notebook: NotebookNode,
    secret: CaseSet,
    public: bytes,
    limits: RunLimits | None = None,
    files: dict[str, bytes] | None = None,
    turn: Turn | None = None,
) -> NotebookRun:
    """Run `notebook` (changed in place: its outputs) with `files` beside it, and judge it.

    `turn` is held while cells run, and not while a kernel starts or ends, which is mostly waiting.

    A cell that raises does not stop the others, one that takes too long is interrupted, and one
    that kills the kernel is left out when the others are run again in a new one. KernelLost where
    kernels end again and again for reasons that are not the notebook's.
    """
    run = NotebookRun(notebook, secret, public, limits or RunLimits(), files or {})
    run.turn = turn or nullcontext()
    pictures = [handed_in(cell.get("outputs")) for cell in notebook.cells]
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    run.ends = time.monotonic() + run.limits.notebook
    lost = 0
    for _ in range(MOST_KERNELS):
        try:
            if _complete(_run_in_one_kernel(run)):
                break
        except KernelLost:
            lost += 1
            if lost == MOST_LOST:
                raise
    else:
        run.troubles.append(f"gave up after {MOST_KERNELS} kernels died")
    for cell, given in zip(run.notebook.cells, pictures, strict=True):
        if cell.cell_type == "code":
            cell.outputs = _joined(cell.outputs)
            put_in_place(cell, [] if run.limits.figures else given)
    run._judged = verdicts = run.verdicts()
    note_claims(run.flags, [run.notebook.cells[index] for index in sorted(run.ended)], verdicts)
    note_source(run.flags, run.notebook, secret.specs, verdicts)
    add_verdicts(run.notebook, verdicts)
    return run


def _joined(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Text on one stream as one output: a busy machine sends one line in several parts."""
    joined: list[NotebookNode] = []
    for output in outputs:
        streams = bool(joined) and output.output_type == joined[-1].output_type == "stream"
        if streams and output.get("name") == joined[-1].get("name"):
            joined[-1].text += output.text
        else:
            joined.append(output)
    return joined


def _complete(work: Coroutine[Any, Any, bool]) -> bool:
    """What `work` returns, whether or not this thread runs an event loop already, as that of
    formgrader's server does: a loop cannot be run inside another, but in a thread of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


async def _run_in_one_kernel(run: NotebookRun) -> bool:
    """Run all cells but the lethal ones; False where the kernel died on the way."""
    client = _Client(run.notebook, log=_log)
    client.timeout_func = lambda cell: _timeout(run, cell)
    client.most_output = run.limits.output
    client.extra_arguments = [] if run.limits.figures else list(NOT_DRAWN)
    with _judge_beside(run) as (session, descriptor, close_theirs):
        async with _kernel(client, run, descriptor):
            close_theirs()
            waits = time.monotonic()
            with run.turn:
                run.ends += time.monotonic() - waits
                return await _run_cells(run, client, session)


async def _run_cells(run: NotebookRun, client: _Client, session: Session) -> bool:
    for index, cell in enumerate(run.notebook.cells):
        if cell.cell_type != "code" or index in run.lethal:
            continue
        if time.monotonic() > run.ends:
            run.troubles.append(f"stopped after {run.limits.notebook:g} s, at cell {index + 1}")
            return True
        session.open(run.exercise_of.get(grade_id_of(cell)))
        by_itself = client.is_leaving = client.timed_out = False
        try:
            await client.async_execute_cell(cell, index)
            died = client.is_leaving
        except DeadKernelError:
            died = by_itself = True
        except CellTimeoutError:
            # It was told to stop and did not; or its reply has come, and only what it was still
            # to say has not.
            died = client.timed_out
            _drop_invalid(cell)
        except Exception as error:  # whatever a kernel may send: it costs the cell
            died = True
            run.troubles.append(
                f"what the kernel said in cell {index + 1} could not be read "
                f"({type(error).__name__})"
            )
        finally:
            session.open(None)
        if died:
            _forgive(run, index, _started(client))
            _note_death(run, index, _started(client), by_itself)
            return False
        run.ended.add(index)
    return True


@asynccontextmanager
async def _kernel(client: _Client, run: NotebookRun, descriptor: int) -> AsyncIterator[None]:
    """A kernel for one pass through the notebook, with a copy of the files that lie beside it."""
    if run.limits.kernel is not None:
        with the_nursery().box(run.files) as box:
            client.km = manager = WarmKernelManager.of(box, descriptor, run.limits.kernel)
            async with AsyncExitStack() as stack:
                try:
                    await stack.enter_async_context(client.async_setup_kernel())
                except RuntimeError as error:  # nbclient's, of a kernel that never spoke
                    raise KernelLost(str(error)) from error
                yield
            for kind, text in manager.started.notices if manager.started else ():
                run.flags.note(kind, f"it tried to {text}" if kind in REFUSED else text)
        return
    client.km = AsyncKernelManager(kernel_name="python3", client_factory=TolerantKernelClient)
    with tempfile.TemporaryDirectory(prefix="kernel-") as folder:
        for name, data in run.files.items():
            (Path(folder) / name).write_bytes(data)
        async with client.async_setup_kernel(
            cwd=folder,
            env=_environment(Path(folder), descriptor),
            pass_fds=(descriptor,),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ):
            yield


def _started(client: _Client) -> Started:
    """What is known of the kernel's end; nothing, where it was not started in the sandbox."""
    return getattr(client.km, "started", None) or Started()


class _Client(NotebookClient):
    """nbclient's client with this course's settings."""

    def __init__(self, notebook: NotebookNode, **options: Any) -> None:
        super().__init__(
            notebook,
            kernel_name="python3",
            allow_errors=True,
            interrupt_on_timeout=True,
            raise_on_iopub_timeout=True,
            skip_cells_with_tag="",  # a tag in a submission decides nothing
            record_timing=False,
            shutdown_kernel="immediate",
            error_on_timeout=_TIMED_OUT,
            on_cell_executed=self._look_at_reply,
            **options,
        )
        self.is_leaving = False  # the kernel was told to, by exit() or quit()
        self.timed_out = False  # the cell that ran last
        self.most_output = 1_000_000
        self._said: dict[int, int] = {}  # characters, by cell

    async def _async_cleanup_kernel(self) -> None:
        if self.km is not None:  # nbclient asks again as Python ends, also after Ctrl-C
            await super()._async_cleanup_kernel()

    _cleanup_kernel = run_sync(_async_cleanup_kernel)

    def _look_at_reply(
        self, cell: NotebookNode, cell_index: int, execute_reply: dict[str, Any]
    ) -> None:
        content = execute_reply["content"]
        if not _is_reply(content):
            content.clear()
            content.update(status="error", ename=UNREADABLE[0], evalue=UNREADABLE[1], traceback=[])
        _keep_error(cell, content)
        _drop_invalid(cell)
        payload = content.get("payload")
        self.is_leaving = isinstance(payload, list) and any(
            isinstance(item, dict) and item.get("source") == "ask_exit" for item in payload
        )

    async def _async_handle_timeout(
        self, timeout: int, cell: NotebookNode | None = None
    ) -> dict[str, Any] | None:
        self.timed_out = True
        reply: dict[str, Any] | None = await super()._async_handle_timeout(timeout, cell)
        return reply

    def process_message(self, msg: dict[str, Any], cell: NotebookNode, cell_index: int) -> Any:
        """As nbclient does; but a message that is malformed is left out, whoever sent it, and so
        is what a cell says beyond the limit."""
        given, kind = msg["content"], msg["msg_type"]
        size = _size_of(given)
        if size is None:
            return None
        try:
            if kind != "status":
                before = self._said.get(cell_index, 0)
                self._said[cell_index] = before + size * (1 + self._copies(given))
                if self._said[cell_index] > self.most_output:
                    if before <= self.most_output:
                        cell.outputs.append(new_output("stream", name="stderr", text=_CUT))
                    return None
            if kind == "stream" and not _is_text_of_a_stream(given):
                return None
            if kind == "update_display_data":  # which nbclient takes as it is
                new_output("display_data", given["data"], metadata=given["metadata"])
            return super().process_message(msg, cell, cell_index)
        except (LookupError, TypeError, ValueError, AttributeError, nbformat.ValidationError):
            return None

    def _copies(self, content: dict[str, Any]) -> int:
        """The outputs elsewhere that this one takes the place of, each in full."""
        transient = content.get("transient")
        if not transient or not transient.get("display_id"):
            return 0
        return sum(map(len, self._display_id_map.get(transient["display_id"], {}).values()))


UNREADABLE = "UnreadableReply", "The kernel's reply to this cell could not be read."


def _is_reply(content: dict[str, Any]) -> bool:
    if content.get("status") != "error":
        return content.get("status") in ("ok", "aborted")
    trace = content.get("traceback")
    return (
        isinstance(content.get("ename"), str)
        and isinstance(content.get("evalue"), str)
        and isinstance(trace, list)
        and all(isinstance(line, str) for line in trace)
    )


def _size_of(content: dict[str, Any]) -> int | None:
    """Bytes that it takes in a file; None where it cannot be written."""
    try:
        return len(json.dumps(content, ensure_ascii=False).encode())
    except (TypeError, ValueError, RecursionError):
        return None


def _is_text_of_a_stream(content: dict[str, Any]) -> bool:
    return content.get("name") in ("stdout", "stderr") and isinstance(content.get("text"), str)


_CUT = "(This cell said more than may be said: the rest was left out.)\n"
_TIMED_OUT = {
    "ename": "TimedOut",
    "evalue": "This cell took too long and was interrupted.",
    "traceback": ["This cell took too long and was interrupted."],
}


def _drop_invalid(cell: NotebookNode) -> None:
    """Leave out outputs that no notebook may hold, and say so: they must not cost the others.

    But for errors, which a reply may tell of, each was looked at as it came.
    """
    valid = []
    for output in cell.outputs:
        try:
            if output.output_type == "error":
                nbformat.validate(nbformat.from_dict(output), "output", version=4)
            if _size_of(output) is None:
                raise ValueError("it cannot be written")
            valid.append(output)
        except (nbformat.ValidationError, TypeError, ValueError, RecursionError):
            text = "(An output that is not valid was left out here.)\n"
            valid.append(new_output("stream", name="stdout", text=text))
    cell.outputs = valid
    if type(cell.execution_count) is not int:
        cell.execution_count = None


def _keep_error(cell: NotebookNode, content: dict[str, Any]) -> None:
    """Put an error that only the reply tells of among the cell's outputs: a time-out, in place of
    the KeyboardInterrupt that it came to."""
    if content["status"] != "error":
        return
    if content["ename"] == _TIMED_OUT["ename"]:
        cell.outputs = [output for output in cell.outputs if output.output_type != "error"]
    if not any(output.output_type == "error" for output in cell.outputs):
        cell.outputs.append(_error(content["ename"], content["evalue"], content["traceback"]))


def _tells_of_a_limit(output: NotebookNode) -> bool:
    if output.output_type == "stream":
        return _CUT in output.text
    if output.output_type != "error":
        return False
    full = any(text in output.evalue for text in ("No space left", "File too large"))
    return full or output.ename in (_TIMED_OUT["ename"], "MemoryError")


@contextmanager
def _judge_beside(run: NotebookRun) -> Iterator[tuple[Session, int, Any]]:
    """A session that serves this run, the kernel's descriptor, and how to close our copy of it."""
    ours, theirs = socket.socketpair()
    session = Session(
        Channel(ours),
        run.secret,
        run.public,
        responses=run.responses,
        longest=run.limits.exercise,
        seconds=run.seconds,
        flags=run.flags,
    )
    thread = session.start()
    try:
        yield session, theirs.fileno(), theirs.close
    finally:
        theirs.close()
        thread.join(GRACE)  # the kernel is gone, so the session sees the end of the line
        session.channel.close()


def _forgive(run: NotebookRun, index: int, started: Started) -> None:
    """KernelLost where the notebook did not end its kernel; the exercise can be answered again."""
    if started.is_our_fault:
        exercise = run.exercise_of.get(grade_id_of(run.notebook.cells[index]), "")
        run.responses.pop(exercise, None)
        run.seconds.pop(exercise, None)
        raise KernelLost(started.reason)


def _note_death(run: NotebookRun, index: int, started: Started, by_itself: bool) -> None:
    cell = run.notebook.cells[index]
    exercise = run.exercise_of.get(grade_id_of(cell))
    if exercise is not None:
        run.responses.setdefault(exercise, [])
        if by_itself and not started.reason and started.status != -signal.SIGKILL:
            ending = _ending_of(started.status)
            run.flags.note("ended-kernel", f"the kernel ended {ending}as it answered {exercise}")
    reason = started.reason
    text = "The kernel ended while it ran this cell (exit, crash, memory or an endless loop)."
    if reason:
        text = f"The kernel was ended while it ran this cell: it had {reason}."
    cell.outputs = [_error("KernelEnded", text, [text])]
    run.lethal.add(index)
    run.troubles.append(f"the kernel ended in cell {index + 1}{f' ({reason})' if reason else ''}")


def _ending_of(status: int | None) -> str:
    if status is None:
        return ""
    if status < 0:
        return f"by signal {-status} ({signal.strsignal(-status)}) "
    return f"with status {status} "


VERDICT_LEAD = "Graded on fresh cases:\n"


def add_verdicts(notebook: NotebookNode, verdicts: list[Verdict]) -> None:
    """Put the judge's word, which is what counts, under each check cell, in place of an older."""
    by_cell = {check_id(verdict.exercise): verdict for verdict in verdicts}
    for cell in notebook.cells:
        verdict = by_cell.get(grade_id_of(cell))
        if verdict is not None:
            data = {"text/plain": VERDICT_LEAD + text_of(verdict)}
            if cell.outputs and cell.outputs[-1].get("metadata") == _OURS:
                cell.outputs.pop()
            cell.outputs.append(new_output("display_data", data, metadata=dict(_OURS)))


# Of a verdict among outputs; the last one of its cell alone is ours.
_OURS = {"autograder": "verdict"}


def _timeout(run: NotebookRun, cell: NotebookNode) -> int:
    exercise = run.exercise_of.get(grade_id_of(cell))
    if exercise is None:
        most = min(run.limits.cell, run.ends - time.monotonic())
        names = {name.partition(".")[0] for name in run.too_slow}
        if names & set(re.findall(r"\w+", cell.source)):
            most = min(most, AFTER_TOO_SLOW)
        return math.ceil(max(1.0, most))
    once = patience_with(run.secret.specs[exercise], run.limits.exercise) + GRACE
    return math.ceil(2 * once)  # secret, then public cases


def _error(name: str, value: str, trace: list[str]) -> NotebookNode:
    output: NotebookNode = new_output("error", ename=name, evalue=value, traceback=trace)
    return output


def _environment(folder: Path, descriptor: int) -> dict[str, str]:
    """A kernel's environment: nothing of the grader's beyond what Python needs to start."""
    kept = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "SYSTEMROOT")
    passed = {name: value for name, value in os.environ.items() if name in kept}
    passed |= {name: value for name, value in os.environ.items() if name.startswith("OPENBLAS_")}
    return passed | {
        "HOME": str(folder),
        "IPYTHONDIR": str(folder / ".ipython"),
        "MPLCONFIGDIR": os.environ.get("MPLCONFIGDIR", str(Path.home() / ".cache/matplotlib")),
        "OMP_NUM_THREADS": "1",  # notebooks run side by side
        "PYTHONDONTWRITEBYTECODE": "1",
        DESCRIPTOR_VARIABLE: str(descriptor),
    }
