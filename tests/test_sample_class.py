"""The sample class in all topics ends as its class files promise; topic 01 in test_grading.py."""

import csv
from pathlib import Path

import pytest
from conftest import TOPIC, Command, make_course

from autograder.exercises import TOPICS
from autograder.exercises.posing import Topic
from autograder.grading.records import load_record
from autograder.sample import Sample, load_samples, make_class
from autograder.student.verdicts import Verdict

OTHERS = [topic for topic in TOPICS if topic != TOPIC]
ROOT = Path(__file__).resolve().parent.parent


def wrong_of(verdicts: list[Verdict]) -> list[str]:
    return [
        f"{item.exercise}: {item.diagnosis or 'wrong values'}"
        for item in verdicts
        if not item.passed
    ]


@pytest.mark.parametrize("topic", OTHERS)
def test_the_class_ends_as_promised(topic: str, autograder: Command, tmp_path: Path) -> None:
    course = make_course(tmp_path / "course")
    make_class(course.root, tmp_path / "submitted", [topic])
    folders = ("--submitted", tmp_path / "submitted", "--into", tmp_path / "results")
    said = autograder("grade", topic, *folders, cwd=course.root, seconds=900)
    assert said.returncode == 0, said.stdout + said.stderr
    samples = [sample for sample in load_samples(course.root) if sample.topic == topic]
    assert len(samples) >= 8
    for sample in samples:
        record = load_record(tmp_path / "results" / "verdicts", topic, sample.student)
        assert record is not None, sample.student
        assert wrong_of(record.verdicts) == sample.wrong, sample.student
        assert sum(item.points for item in record.verdicts) == sample.points, sample.student
    with (tmp_path / "results" / "grades.csv").open(newline="", encoding="utf-8") as file:
        rows = {row["student_id"]: row for row in csv.DictReader(file)}
    assert set(rows) >= {sample.student for sample in samples}


@pytest.mark.parametrize("topic", TOPICS.values(), ids=lambda topic: topic.name)
def test_reference_answers_get_full_points(topic: Topic) -> None:
    (reference,) = (
        item
        for item in samples_in(topic)
        if item.answers.startswith("solutions/") and not item.twist
    )
    assert reference.points == sum(exercise.points for exercise in topic.exercises)
    assert reference.wrong == []


def samples_in(topic: Topic) -> list[Sample]:
    return [sample for sample in load_samples(ROOT) if sample.topic == topic.name]


def test_the_class_is_large_enough() -> None:
    samples = load_samples(ROOT)
    assert len({sample.student for sample in samples}) >= 15
    assert {sample.topic for sample in samples} == set(TOPICS)
