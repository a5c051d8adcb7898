"""The bank: whole files of right and wrong answers, judged as `autograder try` judges them."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from autograder.build.cases import build_cases, build_public_cases, without_training
from autograder.exercises import TOPICS
from autograder.runner.answers import try_files
from autograder.student.verdicts import FAILED, MISSING, PASSED, Verdict

BANK = Path(__file__).parent / "bank"
SECRET_SEED = 20240607
TIME_LIMIT = 12.0  # seconds, for public and secret cases; most right answers take one
RIGHT_ANSWERS = 8  # of each exercise at least, in files that are right throughout

BANKED = [topic for topic in TOPICS if (BANK / topic).is_dir()]


def files_of(topic: str) -> list[Path]:
    return sorted((BANK / topic).glob("*.py"))


def expectations(file: Path) -> dict[str, tuple[str, set[str]]]:
    """Status and acceptable diagnoses (none: any) for each exercise that the first line names."""
    with file.open(encoding="utf-8") as text:
        line = text.readline()
    expected = {}
    for entry in line.removeprefix("#").split("|"):
        exercise, _, verdict = entry.strip().partition(": ")
        status, _, diagnoses = verdict.partition(" ")
        assert status in (PASSED, FAILED, MISSING), f"{file.name}: {line}"
        expected[exercise] = (status, set(diagnoses.split("/")) if diagnoses else set())
    return expected


@cache
def judged(topic: str) -> dict[str, list[Verdict]]:
    """The verdicts on every file of the bank, on public and secret cases, by the file's name."""
    both = build_public_cases(TOPICS[topic]).joined_with(build_cases(TOPICS[topic], SECRET_SEED))
    cases = without_training(TOPICS[topic], both)
    specs = {name: replace(spec, time_limit=TIME_LIMIT) for name, spec in cases.specs.items()}
    found = try_files(replace(cases, specs=specs), files_of(topic), workers=2)
    return {file.name: verdicts for file, verdicts in found}


def problems(file: Path, verdicts: list[Verdict]) -> list[str]:
    """Where the verdicts on a file are not the expected ones, in words."""
    expected = expectations(file)
    unknown = set(expected) - {verdict.exercise for verdict in verdicts}
    found = [f"{file.name}: there is no exercise {name}" for name in unknown]
    for verdict in verdicts:
        status, diagnoses = expected.get(verdict.exercise, (PASSED, set()))
        named = not diagnoses or verdict.diagnosis in diagnoses
        if verdict.status != status or not named:
            wanted = f"{status} {'/'.join(sorted(diagnoses))}".strip()
            came = f"{verdict.status} {verdict.diagnosis}: {verdict.message}"
            found.append(f"{file.name}: {verdict.exercise} should be {wanted}, is {came}")
    return found


@pytest.mark.parametrize("topic", BANKED)
def test_every_answer_gets_its_verdict(topic: str) -> None:
    found = [
        problem for file in files_of(topic) for problem in problems(file, judged(topic)[file.name])
    ]
    assert not found, f"{len(found)} verdicts differ:\n" + "\n".join(found)


@pytest.mark.parametrize("topic", BANKED)
def test_the_bank_holds_enough_right_answers(topic: str) -> None:
    right = [
        file
        for file in files_of(topic)
        if all(status == PASSED for status, _ in expectations(file).values())
    ]
    assert len(right) >= RIGHT_ANSWERS


@pytest.mark.parametrize("topic", BANKED)
def test_every_diagnosis_of_the_topic_is_in_the_bank(topic: str) -> None:
    expected = [
        (exercise, diagnosis)
        for file in files_of(topic)
        for exercise, (_, diagnoses) in expectations(file).items()
        for diagnosis in diagnoses
    ]
    for exercise in TOPICS[topic].exercises:
        if exercise.id != "toy_task":  # no file can have trained it
            for misconception in exercise.misconceptions:
                assert (exercise.id, misconception.slug) in expected
