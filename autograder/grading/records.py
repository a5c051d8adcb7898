"""Verdict records: one JSON file a submission, from which its scores can be computed again."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import zlib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograder.grading.hashes import Hashes
from autograder.runner.flags import Flag
from autograder.runner.session import CaseVerdict
from autograder.student.cases import Response, parse_response, to_data
from autograder.student.tensors import MalformedData, pack, unpack
from autograder.student.verdicts import Verdict

FORMAT = 2
REFUSED = ".refused.json"  # the end of a file's name, which begins with the topic's
WITHDRAWN = "withdrawn"  # the folder for records of what cannot be graded any more
PROPOSED = "proposed"  # the folder for records that no gradebook knows of yet


@dataclass
class Record:
    """How one submission was judged: what went in, what it answered, what came out.

    `answers` are all responses to the cases that `seed` gives, packed; `cases` the verdict on each
    of them with its time. Times are in seconds, `graded_at` is ISO 8601 in UTC.
    """

    student: str
    topic: str
    hashes: Hashes
    seed: int
    verdicts: list[Verdict]
    executed: NotebookNode
    questions_hash: str = ""
    cases_hash: str = ""
    answers: str = ""
    cases: dict[str, list[CaseVerdict]] = field(default_factory=dict)
    repairs: list[str] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    flags: list[Flag] = field(default_factory=list)
    limits: dict[str, float] = field(default_factory=dict)  # in force
    met_limit: bool = False
    sandboxed: bool = True
    seconds: float = 0.0
    graded_at: str = ""

    @property
    def points(self) -> dict[str, float]:
        return {verdict.exercise: verdict.points for verdict in self.verdicts}

    @property
    def responses(self) -> dict[str, list[Response]]:
        """The answers; MalformedData where they cannot be read."""
        try:
            raw = unpack(zlib.decompress(base64.b64decode(self.answers)))
        except (ValueError, zlib.error) as error:
            raise MalformedData(f"the answers cannot be read ({error})") from error
        return {name: [parse_response(item) for item in given] for name, given in raw.items()}

    def fits(self, hashes: Hashes, sandbox: bool, limits: dict[str, float] | None = None) -> bool:
        """Whether it would come out the same, but for the seed, if it were made again."""
        return self.hashes == hashes and self._stands(sandbox, limits)

    def can_be_judged_again(
        self, hashes: Hashes, sandbox: bool, limits: dict[str, float] | None = None
    ) -> bool:
        """Whether its answers would be the same if the notebook were run again, should the
        questions be, while the verdicts on them may be others."""
        mine, theirs = self.hashes, hashes
        same = (mine.notebook, mine.files, mine.run) == (theirs.notebook, theirs.files, theirs.run)
        return same and mine.judge != theirs.judge and self._stands(sandbox, limits)

    def _stands(self, sandbox: bool, limits: dict[str, float] | None) -> bool:
        """One that was made without a sandbox does not stand for one with it, nor one that met a
        limit for one under other limits."""
        limited_otherwise = self.met_limit and limits is not None and limits != self.limits
        return (self.sandboxed or not sandbox) and not limited_otherwise


def packed_answers(responses: dict[str, list[Response]]) -> str:
    return base64.b64encode(zlib.compress(pack(to_data(responses)))).decode()


def record_path(records: Path, topic: str, student: str) -> Path:
    return records / topic / f"{student}.json"


def save_record(records: Path, record: Record) -> None:
    data = asdict(record) | {"format": FORMAT}
    write_whole(record_path(records, record.topic, record.student), json.dumps(data, indent=1))


def write_whole(path: Path, text: str) -> None:
    """Or not at all: a run that is killed leaves no half of a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)


def load_record(records: Path, topic: str, student: str) -> Record | None:
    """The record of a submission; None where there is none that can be read."""
    try:
        data = json.loads(record_path(records, topic, student).read_text(encoding="utf-8"))
        return _parsed(data)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, nbformat.ValidationError):
        return None


def _parsed(data: dict[str, Any]) -> Record | None:
    if data.pop("format") != FORMAT:
        return None
    data["hashes"] = Hashes(**data["hashes"])
    data["verdicts"] = [Verdict.from_data(entry) for entry in data["verdicts"]]
    data["cases"] = {
        name: [CaseVerdict(**entry) for entry in given] for name, given in data["cases"].items()
    }
    data["flags"] = [Flag(**entry) for entry in data["flags"]]
    data["executed"] = nbformat.from_dict(data["executed"])
    nbformat.validate(data["executed"])
    return Record(**data)


def stored_records(records: Path, topic: str, student: str) -> list[tuple[Record, bool]]:
    """The record that stands, then a proposed one, where they are; and whether it is proposed."""
    places = ((records, False), (records / PROPOSED, True))
    found = [(load_record(folder, topic, student), proposed) for folder, proposed in places]
    return [(record, proposed) for record, proposed in found if record is not None]


def put_aside(records: Path, topic: str, student: str) -> None:
    """A record of what is no longer handed in; it may hold what a flag says."""
    path = record_path(records, topic, student)
    if path.is_file():
        target = record_path(records / WITHDRAWN, topic, student)
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(path, target)


def save_refusals(folder: Path, topic: str, reasons: dict[str, str]) -> None:
    """Why submissions could not be graded, by student; what was said of the topic before goes."""
    path = folder / f"{topic}{REFUSED}"
    text = json.dumps(reasons, indent=1)
    if path.is_file() and path.read_text(encoding="utf-8", errors="replace") == text:
        return
    write_whole(path, text)


def load_refusals(folder: Path) -> dict[tuple[str, str], str]:
    """The reasons, by topic and student; those that can be read."""
    found: dict[tuple[str, str], str] = {}
    for path in sorted(folder.glob(f"*{REFUSED}")):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            topic = path.name.removesuffix(REFUSED)
            reasons = json.loads(path.read_text(encoding="utf-8"))
            found |= {(topic, student): str(why) for student, why in reasons.items()}
    return found


def adopt_proposed(records: Path, record: Record) -> None:
    """Let a proposed record be the one that stands."""
    proposed = record_path(records / PROPOSED, record.topic, record.student)
    path = record_path(records, record.topic, record.student)
    path.parent.mkdir(parents=True, exist_ok=True)
    os.replace(proposed, path)
