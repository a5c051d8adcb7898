"""Flags: what a submission tried, with the evidence, for a person to judge. A flag takes no points.

Some are seen while a notebook runs (by the judge, or by the process that keeps the kernel), some
afterwards in what its check cells claim, some in its source, which is parsed and never run. What
runs beside student code can be hidden by it, so no flag is proof of an honest notebook.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from IPython.core.inputtransformer2 import TransformerManager
from nbformat import NotebookNode

from autograder.course import check_id, grade_id_of, is_locked, printable
from autograder.student.bans import GROUPS
from autograder.student.cases import Spec, sound_text
from autograder.student.verdicts import Verdict

KINDS = {
    "claims-more": "its check cell ended as if it had passed, and the judge says otherwise",
    "malformed-message": "the judge was sent what no client of ours sends",
    "flooded-judge": "the judge was sent too much",
    "ended-kernel": "the kernel ended by itself while it answered",
    "refused-read": "it tried to open what lies outside its folder",
    "refused-connection": "it tried to reach the network or a socket",
    "refused-signal": "it tried to signal a process that is not its own",
    "banned-name": "an answer that passed names something that is banned for it",
    "judge-touched": "its source reaches for the judge's client, for frames, or into torch",
}
REFUSED = ("refused-read", "refused-connection", "refused-signal")
MOST_OF_A_KIND = 10
LONGEST_EVIDENCE = 300


@dataclass(frozen=True)
class Flag:
    """One thing that was seen: its kind, and a sentence with the evidence."""

    kind: str
    evidence: str


class Flags(list[Flag]):
    """Those of one run, each once, and of each kind so many that a person can read them."""

    def note(self, kind: str, evidence: str) -> None:
        evidence = " ".join(sound_text(evidence).split())
        evidence = printable(evidence)
        if kind not in KINDS:  # a kernel may tell anything
            kind = "malformed-message"
        flag = Flag(kind, evidence[:LONGEST_EVIDENCE])
        if flag not in self and sum(other.kind == kind for other in self) < MOST_OF_A_KIND:
            self.append(flag)


# ---- what the check cells claim


def note_claims(flags: Flags, cells: Iterable[NotebookNode], verdicts: list[Verdict]) -> None:
    """A check cell that ran to its end without an error, or printed that it passed, where the
    verdict is another. `cells` are those that were run."""
    failed = {check_id(item.exercise): item for item in verdicts if not item.passed}
    for cell in cells:
        verdict = failed.get(grade_id_of(cell))
        if verdict is None:
            continue
        said = " ".join(map(_text_of, cell.outputs))
        raised = any(output.output_type == "error" for output in cell.outputs)
        if not raised or f"✔ {verdict.exercise}" in said:
            claim = f"and said {said[:120]!r}" if said.strip() else "and said nothing"
            ending = "ended with an error" if raised else "ended without an error"
            judged = verdict.status + (f" ({verdict.diagnosis})" if verdict.diagnosis else "")
            flags.note("claims-more", f"{grade_id_of(cell)} {ending} {claim}; the judge: {judged}")


def _text_of(output: NotebookNode) -> str:
    if output.output_type == "error":
        return ""
    return str(output.get("text") or output.get("data", {}).get("text/plain", ""))


# ---- what the source names

_INSIDE = {
    "AUTOGRADER_JUDGE_DESCRIPTOR": "the judge's line",
    "DESCRIPTOR_VARIABLE": "the judge's line",
    "answer_questions": "the judge's client",
    "judge_answer": "the judge's client",
    "_getframe": "frames of the stack",
    "currentframe": "frames of the stack",
    "f_back": "frames of the stack",
    "f_locals": "frames of the stack",
    "tb_frame": "frames of the stack",
    "get_objects": "all objects of the process",
    "get_referrers": "all objects of the process",
    "settrace": "a trace of what runs",
    "setprofile": "a trace of what runs",
    "ast_transformers": "how cells are compiled",
    "run_cell_async": "how cells are run",
    "run_cell": "how cells are run",
}
_CLIENT = ("autograder_student", "autograder.student")
_PLAIN_SETTINGS = ("torch.backends", "torch._dynamo", "torch._inductor")
_Definitions = dict[str, list[tuple[int, ast.AST]]]


@dataclass
class _Source:
    """The student's cells, parsed: what each name is defined as, and imported from."""

    cells: list[tuple[int, NotebookNode, ast.Module]]
    definitions: _Definitions = field(default_factory=dict)
    imported: dict[str, str] = field(default_factory=dict)


def note_source(
    flags: Flags, notebook: NotebookNode, specs: dict[str, Spec], verdicts: list[Verdict]
) -> None:
    """What the cells that a student wrote name: things banned for an answer that passed, and the
    inside of the judge's client."""
    source = _parsed(notebook)
    passed = {verdict.exercise for verdict in verdicts if verdict.passed}
    for name, spec in specs.items():
        if name in passed and spec.banned:
            for number, found in _banned_in(source, name.partition(".")[0], spec.banned):
                flags.note("banned-name", f"cell {number} names {found}, banned for {name}")
    for number, cell, _ in source.cells:
        if not is_locked(cell):
            for what in _inside_in(cell.source):
                flags.note("judge-touched", f"cell {number} {what}")


@lru_cache(1024)  # most cells of a class are the same in all its notebooks
def _tree_of(source: str) -> ast.Module | None:
    try:
        return ast.parse(TransformerManager().transform_cell(source))
    except (SyntaxError, ValueError, RuntimeError, MemoryError):
        return None  # what cannot be parsed cannot be run


def _parsed(notebook: NotebookNode) -> _Source:
    source = _Source([])
    for number, cell in enumerate(notebook.cells, start=1):
        tree = _tree_of(cell.source) if cell.cell_type == "code" else None
        if tree is None:
            continue
        source.cells.append((number, cell, tree))
        for node in tree.body:
            _note_definitions(source, number, node)
    return source


def _note_definitions(source: _Source, number: int, node: ast.stmt) -> None:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        source.definitions.setdefault(node.name, []).append((number, node))
    elif isinstance(node, ast.Import | ast.ImportFrom):
        for alias in node.names:
            source.imported[alias.asname or alias.name] = alias.name
    elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value is not None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            if isinstance(target, ast.Name):
                source.definitions.setdefault(target.id, []).append((number, node.value))


def _banned_in(source: _Source, answer: str, groups: list[str]) -> Iterator[tuple[int, str]]:
    """Cell and name of what is banned in an answer, or in what it uses of the notebook."""
    waiting, done = [answer], set()
    while waiting:
        name = waiting.pop()
        done.add(name)
        for number, tree in source.definitions.get(name, []):
            for node in ast.walk(tree):
                if isinstance(node, ast.Name) and node.id in source.definitions:
                    if node.id not in done:
                        waiting.append(node.id)
                    continue
                for said in _names_in(node, source.imported):
                    if any(GROUPS[group][1](said.rpartition(".")[2]) for group in groups):
                        yield number, f"`{said}`"


def _names_in(node: ast.AST, imported: dict[str, str]) -> list[str]:
    if isinstance(node, ast.Attribute):
        return [node.attr]
    if isinstance(node, ast.Name):
        return [imported.get(node.id, "")] if node.id in imported else []
    if isinstance(node, ast.ImportFrom):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
        return [node.value]
    return []


@lru_cache(1024)
def _inside_in(source: str) -> list[str]:
    tree = _tree_of(source)
    try:
        return [] if tree is None else list(_reaches_of(tree))
    except RecursionError:
        return ["is nested too deeply to be looked through"]


def _reaches_of(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == "check":
            yield "defines `check` anew"
        for said in _words_of(node):
            if said in _INSIDE:
                yield f"names `{said}` ({_INSIDE[said]})"
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from _imports_of_client(node)
        for target in _targets(node):
            if isinstance(target, ast.Name) and target.id == "check" and not _loads_it(node):
                yield "assigns to `check`"
            elif isinstance(target, ast.Attribute) and (told := _reached(ast.unparse(target))):
                yield told
        if isinstance(node, ast.Call) and node.args and _name_of(node.func) == "setattr":
            told = _reached(ast.unparse(node.args[0]) + ".")
            yield from [told] if told else []


def _loads_it(node: ast.AST) -> bool:
    """Whether it is the assignment's own line, run once more."""
    value = getattr(node, "value", None)
    return isinstance(value, ast.Call) and _name_of(value.func) == "load_check"


def _name_of(called: ast.expr) -> str:
    return ast.unparse(called).rpartition(".")[2]


def _words_of(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute):
        return [node.attr]
    if isinstance(node, ast.ImportFrom):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    return []


def _imports_of_client(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names if alias.name.startswith(_CLIENT)]
    else:
        ours = (node.module or "").startswith(_CLIENT)
        names = [alias.name for alias in node.names if ours and alias.name != "load_check"]
    for name in names:
        yield f"imports `{name}` (the judge's client)"


def _targets(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        found = node.targets
    elif isinstance(node, ast.AugAssign | ast.AnnAssign):
        found = [node.target]
    elif isinstance(node, ast.Delete):
        found = node.targets
    else:
        return []
    return [
        part for item in found for part in (item.elts if isinstance(item, ast.Tuple) else [item])
    ]


def _reached(target: str) -> str:
    """What is assigned to, where that is torch, its tensors and modules, or the client."""
    root = target.partition(".")[0]
    if root in ("torch", "nn", "F", "Tensor") and not target.startswith(_PLAIN_SETTINGS):
        return f"assigns to `{target.rstrip('.')}` (torch's own)"
    if root in ("check", "autograder_student"):
        return f"assigns to `{target.rstrip('.')}` (the judge's client)"
    return ""
