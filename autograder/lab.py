"""The student's place on this machine: copies of the releases that may be worked in."""

from __future__ import annotations

import shutil
from pathlib import Path

from autograder.course import Trouble


def prepare_lab(root: Path, folder: Path | None = None) -> Path:
    """Copy each lesson and release to `folder` (default: student/), leaving what is there alone."""
    place = (folder or root / "student").absolute()
    releases = sorted(path for path in (root / "release").glob("*") if path.is_dir())
    if not releases:
        raise Trouble("There is no release yet: run `make release` first.")
    for release in releases:
        if not (place / release.name).exists():
            shutil.copytree(release, place / release.name)
    lessons = place / "notebooks"
    lessons.mkdir(parents=True, exist_ok=True)
    for lesson in sorted((root / "notebooks").glob("*.ipynb")):
        if not (lessons / lesson.name).exists():
            shutil.copy2(lesson, lessons / lesson.name)
    return place
