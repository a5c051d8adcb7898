"""Feedback pages of a class that was graded before."""

from __future__ import annotations

from nbgrader.apps import NbGraderAPI

from autograder.course import Course, Trouble


def write_feedback(course: Course, topics: list[str]) -> int:
    """nbgrader's feedback for every graded submission; how many there are."""
    graded = [
        folder
        for topic in topics
        for folder in sorted((course.into / "autograded").glob(f"*/{topic}"))
    ]
    if not graded:
        raise Trouble(f"Nothing was graded in {course.into} yet: run `make grade` first.")
    api = NbGraderAPI(config=course.config())
    for folder in graded:
        outcome = api.generate_feedback(folder.name, folder.parent.name, force=True)
        if not outcome["success"]:
            raise Trouble(
                f"No feedback for {folder.parent.name}, {folder.name}:\n{outcome.get('log', '')}"
            )
    return len(graded)
