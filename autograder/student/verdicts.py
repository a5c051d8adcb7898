"""A verdict: how an exercise was judged, in a form that travels as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

PASSED, FAILED, MISSING = "passed", "failed", "missing"

# What can go wrong in any exercise; each exercise adds its own misconceptions to these.
GENERIC_DIAGNOSES = {
    "not-implemented": "There is no answer yet: fill in the body and remove the line that raises "
    "NotImplementedError.",
    "raised": "Your code raised an exception.",
    "wrong-type": "What came back is not of the type asked for. (Where it is None, a return is "
    "missing; where it is one tensor of two, `return output, weights` gives both.)",
    "wrong-shape": "The shape of the result is not the one asked for. Write the shape of every "
    "intermediate tensor beside its line and find where the two part.",
    "wrong-dtype": "The values are right, but their dtype is not: the result should have the "
    "dtype asked for.",
    "nan": "The result holds NaN where it should hold numbers. Look for inf - inf, inf / inf, "
    "0 / 0 or 0 * inf.",
    "input-changed": "Your code changes its own input. The caller still needs it: make a new "
    "tensor instead of working in place (no `-=`, no `x[...] = ...`, no method that ends in `_`).",
    "result-changed": "What an earlier call returned changed when the function was called again: "
    "it must not hand out a buffer that it uses again.",
    "no-gradient": "The values are right, the gradients are not: something cuts the graph or goes "
    "round it. Look for .detach(), .item(), .data, no_grad, NumPy, or a tensor built anew from "
    "numbers.",
    "wrong-parameters": "The names or the shapes of the module's parameters are not the ones "
    "asked for. Parameters are named after the attributes that hold them: "
    "`self.qkv = nn.Linear(...)` makes `qkv.weight` and `qkv.bias`. (Where all are missing, "
    "`super().__init__()` or the assignment to self may be.)",
    "unrepeatable": "The same module gives something else when it is called once more with the "
    "same input. Look for dropout, for noise, and for what forward keeps or changes in self.",
    "banned-call": "This exercise is to be built by hand, and your code calls a ready-made "
    "function for it.",
    "too-slow": "Your code did not finish in time. Look for a loop that never ends, or one over "
    "single numbers where a tensor operation would do.",
    "no-batch": "Your code is right for one number of leading dimensions only. Count dimensions "
    "from the end (-1, -2), so that any number of them may stand in front: "
    "`k.transpose(-2, -1)`, not `k.T`; `'...td,...sd->...ts'` in an einsum.",
    "no-value-error": "Sizes that cannot work should raise a ValueError, and did not.",
}


@dataclass(frozen=True)
class Verdict:
    """The judgement of one exercise.

    `status` is passed, failed or missing; `diagnosis` a slug or None; `message` tells the student
    what was expected, what came, at which index, and what to look at next.
    """

    exercise: str
    status: str
    points: float
    max_points: float
    diagnosis: str | None
    message: str

    @property
    def passed(self) -> bool:
        return self.status == PASSED

    def to_data(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Verdict:
        return cls(**data)


def points_text(points: float) -> str:
    """`3` for 3.0, `2.5` for 2.5."""
    return f"{points:g}"


def not_defined(exercise: str, max_points: float) -> Verdict:
    """The verdict where no answer was given at all."""
    message = f"`{exercise}` is not defined. " + GENERIC_DIAGNOSES["not-implemented"]
    return Verdict(exercise, MISSING, 0.0, max_points, "not-implemented", message)


_OWN_FAULTS = ("wrong-parameters", "banned-call")  # never a building block's


def with_faults_below(verdicts: list[Verdict], builds_on: dict[str, list[str]]) -> list[Verdict]:
    """The same verdicts; a failed one says which of its building blocks do not pass either."""
    below = {verdict.exercise: verdict for verdict in verdicts if not verdict.passed}
    return [
        verdict
        if verdict.status != FAILED or verdict.diagnosis in _OWN_FAULTS
        else _pointing_at(
            verdict, [below[name] for name in builds_on[verdict.exercise] if name in below]
        )
        for verdict in verdicts
    ]


def _pointing_at(verdict: Verdict, below: list[Verdict]) -> Verdict:
    unfilled = [item.exercise for item in below if item.status == MISSING]
    failing = [item.exercise for item in below if item.status == FAILED]
    message = verdict.message
    if unfilled and verdict.diagnosis == "raised":
        message += f"\n{_listed(unfilled)} not filled in yet: your code may have called that."
    if failing:
        message += (
            f"\n{_listed(failing, 'does', 'do')} not pass either: where your code calls that, the "
            "fault may lie there."
        )
    return replace(verdict, message=message)


def _listed(names: list[str], one: str = "is", several: str = "are") -> str:
    """`a` is; `a` and `b` are; `a`, `b` and `c` are."""
    quoted = [f"`{name}`" for name in names]
    text = " and ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)
    return f"{text} {several if len(names) > 1 else one}"
