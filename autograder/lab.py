"""The student's place on this machine: copies of the releases that may be worked in."""

from __future__ import annotations

import shutil
from pathlib import Path

from autograder.course import Trouble


def prepare_lab(root: Path, folder: Path | None = None) -> Path:
    """Copy each lesson and release to `folder` (default: student/), leaving what is there alone.

    They lie in it as they do in the course, so that the links between them hold.
    """
    place = (folder or root / "student").absolute()
    releases = [path for path in sorted((root / "release").glob("*")) if path.is_dir()]
    if not releases:
        raise Trouble("There is no release yet: run `make release` first.")
    lessons = [
        path for path in sorted((root / "notebooks").glob("*")) if path.suffix in (".ipynb", ".py")
    ]
    try:
        for source in [*releases, *lessons]:
            _copy(source, place / source.relative_to(root))
    except OSError as error:
        raise Trouble(f"Cannot write to {place}: {error.strerror or error}.") from error
    return place


def _copy(source: Path, target: Path) -> None:
    """A notebook that is there belongs to the student; the files made for it are kept new."""
    if source.is_dir():
        for inner in source.iterdir():
            _copy(inner, target / inner.name)
    elif not (target.exists() and target.suffix == ".ipynb"):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)
