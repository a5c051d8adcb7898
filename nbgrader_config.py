"""The course, as nbgrader and the autograder see it: `nbgrader autograde TOPIC` and the button in
formgrader judge in the same way as `autograder grade`, through the preprocessors named here."""

from pathlib import Path

from nbgrader.preprocessors import (
    AssignLatePenalties,
    CheckCellMetadata,
    GetGrades,
    IgnorePattern,
    LimitOutput,
)

from autograder import nbgrader_hooks
from autograder.grading.feedback import PAGES, FeedbackExporter

c = get_config()  # type: ignore[name-defined]  # noqa: F821

c.CourseDirectory.course_id = "transformers"
c.CourseDirectory.root = str(Path(__file__).parent)

# Due dates as "2026-10-12 23:59:00 UTC". A date set in formgrader is left as it is.
c.GradingOptions.due_dates = {
    "01_self_attention": "2026-10-12 21:59:00 UTC",
    "02_multi_head_attention": "2026-10-19 21:59:00 UTC",
    "03_positional_encoding": "2026-10-26 22:59:00 UTC",
    "04_transformer_block": "2026-11-02 22:59:00 UTC",
    "05_causal_mask": "2026-11-09 22:59:00 UTC",
    "06_training": "2026-11-16 22:59:00 UTC",
}
# c.GradingOptions.workers = 0           # notebooks run side by side; 0: the number of cores
# c.GradingOptions.cell_timeout = 90.0   # seconds for one cell of a student's own
# c.GradingOptions.exercise_timeout = 0.0     # seconds for one exercise's answers; 0: its own limit
# c.GradingOptions.notebook_timeout = 900.0   # seconds for a whole notebook
# c.GradingOptions.memory_limit = 4.0    # GiB of a kernel, all its processes together
# c.GradingOptions.disk_limit = 0.5      # GiB that a kernel may write
# c.GradingOptions.process_limit = 64    # processes of a kernel; with threads twice as many
# c.GradingOptions.cpu_limit = 900.0     # seconds of CPU time for a whole notebook
# c.GradingOptions.output_limit = 1_000_000   # characters that a cell may print

# What a submission goes through: repaired against the release, run beside the judge, and the
# judge's verdicts (not the notebook's outputs) written to the gradebook.
c.Autograde.sanitize_preprocessors = [nbgrader_hooks.Repair, CheckCellMetadata]
c.Autograde.autograde_preprocessors = [
    nbgrader_hooks.JudgedExecute,
    IgnorePattern,
    LimitOutput,
    nbgrader_hooks.SaveVerdicts,
    AssignLatePenalties,
    CheckCellMetadata,
    nbgrader_hooks.SafeToShow,
]
c.GenerateFeedback.exporter_class = FeedbackExporter
c.GenerateFeedback.preprocessors = [GetGrades]
# By its own name: formgrader has a template of its own for the exporter that this one is made from.
c.FeedbackExporter.template_name = "judged"
c.FeedbackExporter.extra_template_basedirs = [str(PAGES)]
c.ExportApp.plugin_class = nbgrader_hooks.QuotedCsv
