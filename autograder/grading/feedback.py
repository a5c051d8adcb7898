"""Feedback pages: what a student gets to see.

A page is safe to open whoever wrote the notebook: of outputs it shows text and PNG pictures alone,
HTML in written answers is reduced to plain formatting, there is no script, and a content security
policy says so once more.
"""

from __future__ import annotations

import html
import re
import secrets
from copy import copy
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

import bleach
import nbformat
from nbconvert.exporters import HTMLExporter, TemplateExporter
from nbconvert.filters import Highlight2HTML, markdown2html_mistune, strip_ansi
from nbformat import NotebookNode
from nbgrader.api import Gradebook, MissingEntry, SubmittedAssignment, SubmittedNotebook
from traitlets import default

from autograder.build.webpage import code_colours, with_formulas
from autograder.course import Course, Trouble, grade_id_of
from autograder.grading.records import Record, load_record, write_whole
from autograder.runner.notebook import VERDICT_LEAD
from autograder.student.verdicts import points_text

PAGES = Path(__file__).parent / "pages"
NO_SANDBOX = "Graded without a sandbox: what students wrote ran with the grader's rights."
TAGS = {
    *("p", "br", "hr", "em", "strong", "code", "pre", "blockquote", "ul", "ol", "li", "sub", "sup"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"),
    *("details", "summary", "span", "div", "del"),
}
MATH_TAGS = {
    *("math", "mrow", "mi", "mn", "mo", "ms", "mtext", "mspace", "mstyle", "mfrac", "msqrt"),
    *("mroot", "msub", "msup", "msubsup", "munder", "mover", "munderover", "mtable", "mtr", "mtd"),
    *("mpadded", "menclose", "mphantom"),
}
MATH_ATTRIBUTES = [
    *("display", "stretchy", "fence", "form", "mathvariant", "width", "displaystyle"),
    *("scriptlevel", "columnalign", "rowspacing", "linethickness", "minsize", "maxsize", "lspace"),
]
MOST_COLOURED = 1000  # lines; the time that colouring takes grows with their square
ANCHOR = re.compile(r'<a class="anchor-link"[^>]*>.*?</a>')
_MARK = secrets.token_hex(8)  # cannot stand in what a student wrote


class FeedbackExporter(HTMLExporter):
    """nbconvert's exporter with the page of this course, for nbgrader's own commands as well."""

    @default("template_name")
    def _template_name_default(self) -> str:
        return "judged"

    @default("extra_template_basedirs")
    def _extra_template_basedirs_default(self) -> list[str]:
        return [str(PAGES)]

    def default_filters(self) -> Any:
        yield from super().default_filters()
        yield from {
            "points": points_text,
            "clean_markdown": clean_markdown,
            "coloured": coloured,
            "verdict": verdict_text,
            "in_a_word": in_a_word,
            "plain": lambda text: html.escape(strip_ansi(str(text))),
            "base64_only": lambda text: re.sub(r"[^A-Za-z0-9+/=]", "", str(text)),
        }.items()

    def from_notebook_node(
        self, nb: NotebookNode, resources: dict[str, Any] | None = None, **given: Any
    ) -> Any:
        resources = dict(resources or {}) | {"page_style": page_style()}
        # Not HTMLExporter's, which would parse the page once more to add texts to pictures.
        return TemplateExporter.from_notebook_node(self, nb, resources, **given)


@lru_cache
def page_style() -> str:
    return (PAGES / "feedback.css").read_text(encoding="utf-8") + code_colours()


def is_colour(tag: str, name: str, value: str) -> bool:
    """Whether it is what colours code. No other class: boxes and verdicts of the page are ours."""
    return name == "class" and re.fullmatch(r"highlight|[a-z][a-z0-9]{0,2}", value) is not None


# Most cells of a class are the same in all its notebooks.
@lru_cache(4096)
def clean_markdown(text: str) -> str:
    formulas: list[str] = []

    def held(formula: str) -> str:
        formulas.append(str(bleach.clean(formula, tags=MATH_TAGS, attributes=MATH_ATTRIBUTES)))
        return f"FORMULA{len(formulas) - 1}END{_MARK}"

    made = ANCHOR.sub("", markdown2html_mistune(with_formulas(text, held)))
    attributes = {"span": is_colour, "div": is_colour}
    clean = str(bleach.clean(made, tags=TAGS, attributes=attributes))
    return re.sub(rf"FORMULA(\d+)END{_MARK}", lambda found: formulas[int(found[1])], clean)


@lru_cache(4096)
def coloured(source: str) -> str:
    if source.count("\n") > MOST_COLOURED:
        return f"<pre>{html.escape(source)}</pre>"
    return str(_highlighter()(source))


@lru_cache(1)
def _highlighter() -> Highlight2HTML:
    return Highlight2HTML(pygments_lexer="ipython3")


@lru_cache(1)
def _exporter() -> FeedbackExporter:
    # With none that change it; each would also have the notebook validated once more.
    return FeedbackExporter(preprocessors=[], default_preprocessors=[])


def verdict_text(text: object) -> str:
    return str(text).removeprefix(VERDICT_LEAD)


def in_a_word(text: object) -> str:
    """Of a verdict: how it ended, and the name of the mistake."""
    head = verdict_text(text).split("\n", 1)[0]
    return "✔ passed" if head.startswith("✔") else f"✘ {head.partition(': ')[2].partition(', ')[0]}"


def write_page(
    course: Course, entered: SubmittedAssignment, executed: NotebookNode, notes: list[str]
) -> None:
    """The page of one submission, with the points and comments that the gradebook has of it."""
    (graded,) = entered.notebooks
    given = {
        "student": name_of(entered),
        "late": late_text(entered),
        "notebook": graded.name,
        "score": graded.score - (graded.late_submission_penalty or 0.0),
        "max_score": graded.max_score,
        "late_penalty": graded.late_submission_penalty,
    }
    page, _ = _exporter().from_notebook_node(
        with_points(executed, graded), {"nbgrader": given, "notes": notes}
    )
    folder = course.into / "feedback" / entered.student.id / entered.name
    write_whole(folder / f"{graded.name}.html", page)


def name_of(entered: SubmittedAssignment) -> str:
    """A person's name, where the gradebook has it, and what nbgrader calls them."""
    student = entered.student
    full = " ".join(name for name in (student.first_name, student.last_name) if name)
    return f"{full} ({student.id})" if full else str(student.id)


def late_text(entered: SubmittedAssignment) -> str:
    late = timedelta(seconds=round(entered.total_seconds_late))
    return f"Handed in late, by {late}." if late else ""


def with_points(executed: NotebookNode, graded: SubmittedNotebook) -> NotebookNode:
    """A notebook whose cells say their points and comments."""
    grades = {grade.name: grade for grade in graded.grades}
    comments = {comment.name: comment.comment for comment in graded.comments}
    notebook = copy(executed)
    notebook["cells"] = [copy(cell) for cell in executed.cells]
    for cell in notebook.cells:
        name = grade_id_of(cell)
        if name:
            of = dict(cell.metadata["nbgrader"])
            if name in grades:
                grade = grades[name]
                of |= {"score": grade.score, "points": grade.max_score}
                of["waits"] = bool(grade.needs_manual_grade and grade.manual_score is None)
            of["comment"] = comments.get(name) or ""
            cell["metadata"] = NotebookNode({**cell.metadata, "nbgrader": NotebookNode(of)})
    return notebook


def write_feedback(course: Course, topics: list[str]) -> int:
    """The page of every graded submission anew, with the points given by hand since."""
    folders = [
        folder
        for topic in topics
        for folder in sorted((course.into / "autograded").glob(f"*/{topic}"))
    ]
    if not folders:
        raise Trouble(
            f"Nothing was graded in {course.into} yet: run `autograder grade` first, or say where "
            "with --into (for the sample class: --into sample)."
        )
    failed = []
    with Gradebook(f"sqlite:///{course.gradebook}") as gradebook:
        for folder in folders:
            student, topic = folder.parent.name, folder.name
            try:
                record = load_record(course.records, topic, student)
                entered = gradebook.find_submission(topic, student)
                graded = nbformat.read(folder / f"{topic}.ipynb", as_version=4)
                executed = graded if record is None else record.executed
                write_page(course, entered, executed, notes_of(record))
            except (MissingEntry, OSError, ValueError) as error:
                failed.append(f"{student}, {topic} ({error})")
    if failed:
        raise Trouble(
            f"Feedback was written for {len(folders) - len(failed)} submissions, but not for "
            f"{'; '.join(failed)}. Grade again, and see what the table says of them."
        )
    return len(folders)


def notes_of(record: Record | None) -> list[str]:
    """What stands above the points."""
    if record is None:
        return []
    without = [] if record.sandboxed else [NO_SANDBOX]
    return without + [f"Put right before grading: {repair}." for repair in record.repairs]
