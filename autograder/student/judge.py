"""Comparing responses with cases, and naming the mistake.

Right means equal to the reference within RTOL and ATOL; gradients within RTOL and
ATOL * max(1, the largest gradient of that tensor); entries marked exact, exactly.
A misconception is named where it fits the responses to every case.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from autograder.student.bans import GROUPS
from autograder.student.cases import UNCLEAR, Case, Outcome, Raised, Response, Spec
from autograder.student.evaluation import TIME_LIMIT
from autograder.student.verdicts import (
    FAILED,
    GENERIC_DIAGNOSES,
    MISSING,
    PASSED,
    Verdict,
    points_text,
)

RTOL, ATOL = 1e-4, 1e-5


@dataclass(frozen=True)
class Finding:
    """What is wrong with one response: a generic diagnosis (or none) and a sentence of detail."""

    diagnosis: str | None
    detail: str


def judge(spec: Spec, cases: list[Case], responses: list[Response]) -> Verdict:
    """The verdict on an exercise from the responses to its cases, in the same order.

    There may be fewer responses than cases: a response after a time limit is not waited for.
    """
    asked = list(zip(cases, responses, strict=False))
    if responses and all(_is_stub(response) for response in responses):
        return _verdict(spec, MISSING, "not-implemented", "")
    banned = [name for response in responses for name in response.banned]
    if banned:
        return _verdict(spec, FAILED, "banned-call", _banned_detail(spec, banned))
    findings = [_find(spec, case, response) for case, response in asked]
    failing = [index for index, finding in enumerate(findings) if finding is not None]
    if not failing:
        if len(responses) < len(cases):
            return _verdict(spec, FAILED, "raised", "The answers stopped before the last case.")
        return _verdict(spec, PASSED, None, "")
    misconception = _misconception(asked, findings)
    named = misconception or _pattern(spec, asked, findings)
    # A misconception is told by its values, also where the answer raises elsewhere.
    first = _most_telling(findings, [None, *_ORDER] if misconception else _ORDER)
    assert first is not None
    detail = f"On {_where(cases[findings.index(first)])}: {first.detail}"
    return _verdict(spec, FAILED, named or first.diagnosis, detail)


def in_time(response: Response) -> bool:
    """False where the answer was stopped: there is no time left for a further question."""
    stopped = [response.plain.raised, response.traced.raised, response.gradient_error]
    return not any(raised and raised.type == TIME_LIMIT for raised in stopped)


# Which finding to show where cases fail in several ways: the earlier one explains the later.
_ORDER: list[str | None] = [
    "too-slow",
    "raised",
    "wrong-type",
    "wrong-shape",
    "input-changed",
    "nan",
    None,
    "wrong-dtype",
    "result-changed",
    "no-gradient",
]


def _most_telling(findings: list[Finding | None], order: list[str | None]) -> Finding | None:
    present = [finding for finding in findings if finding is not None]
    return min(present, key=lambda finding: order.index(finding.diagnosis), default=None)


def _find(spec: Spec, case: Case, response: Response) -> Finding | None:
    """What is wrong with a response, in the order in which a student should hear it."""
    found = _compare(spec, case, response.plain)
    if found is None and response.changed_inputs:
        names = ", ".join(f"`{name}`" for name in response.changed_inputs)
        return Finding("input-changed", f"after the call {names} is no longer what it was.")
    if found is None and response.changed_results:
        return Finding("result-changed", "the result of an earlier call is no longer what it was.")
    found = found or _compare(spec, case, response.traced)
    return found or _compare_gradients(spec, case, response)


def _compare(spec: Spec, case: Case, outcome: Outcome) -> Finding | None:
    expected = case.expected
    if outcome.raised is not None:
        return Finding(*_raised_detail(outcome.raised, spec.time_limit))
    if outcome.kind != expected.kind or len(outcome.values) != len(expected.values):
        wanted = _what_is_wanted(spec)
        came = outcome.kind if outcome.kind != "sequence" else f"{len(outcome.values)} tensors"
        came = "a single tensor" if came == "tensor" else came
        return Finding("wrong-type", f"expected {wanted}, got {came}.")
    pairs = list(zip(spec.outputs, outcome.values, expected.values, strict=True))
    for name, value, right in pairs:
        if value.shape != right.shape:
            shapes = f"expected shape {tuple(right.shape)}, got {tuple(value.shape)}."
            return Finding("wrong-shape", f"{name}: {shapes}")
    for index, (name, value, right) in enumerate(pairs):
        exact = case.exact[index] if case.exact else None
        wrong = ~close(value, right, exact)
        if bool(wrong.any()) and not _is_right_but_coarse(value, right):
            return _value_finding(spec, name, value, right, wrong)
    for name, value, right in pairs:
        if value.dtype != right.dtype:
            return Finding("wrong-dtype", f"{name}: expected {right.dtype}, got {value.dtype}.")
    return None


def _is_right_but_coarse(value: Tensor, right: Tensor) -> bool:
    """Whether a floating-point dtype of fewer bits is all that is wrong with the values."""
    if value.dtype not in (torch.float16, torch.bfloat16):
        return False
    return torch.allclose(
        value.double(), right.double(), rtol=8 * torch.finfo(value.dtype).eps, atol=1e-2
    )


def _value_finding(spec: Spec, name: str, value: Tensor, right: Tensor, wrong: Tensor) -> Finding:
    place = tuple(int(n) for n in wrong.nonzero()[0])
    index = f"[{', '.join(map(str, place))}]" if place else ""
    came, wanted = _number(value[place]), _number(right[place])
    detail = f"{name}{index} should be {wanted}, yours is {came}"
    detail += f" ({int(wrong.sum())} of {wrong.numel()} entries differ)."
    if bool((value.isnan() & ~right.isnan()).any()):
        return Finding("nan", detail)
    return Finding(None, detail + _broken_property(spec, name, value))


def _broken_property(spec: Spec, name: str, value: Tensor) -> str:
    if name not in spec.distributions:
        return ""
    sums = value.sum(-1)
    if not bool(close(sums, torch.ones_like(sums)).all()):
        worst = (sums - 1).abs().nan_to_num(torch.inf).argmax()
        found = _number(sums.flatten()[worst])
        return f" Rows of {name} should sum to 1; one of yours sums to {found}."
    if bool((value < 0).any()):
        return f" Probabilities are never negative; {name} has negative entries."
    return f" Each row of {name} sums to 1, but the share of each entry is not right."


def _compare_gradients(spec: Spec, case: Case, response: Response) -> Finding | None:
    if response.gradient_error is not None:
        diagnosis, detail = _raised_detail(response.gradient_error, spec.time_limit)
        if diagnosis == "raised":
            return Finding("no-gradient", f"with gradients it raised {detail}")
        return Finding(diagnosis, detail)
    for name, right in case.gradients.items():
        found = response.gradients.get(name)
        value = torch.zeros_like(right) if found is None else found
        if value.shape != right.shape or not bool(close_gradient(value, right).all()):
            how = "no gradient reaches it" if found is None else "its gradient is wrong"
            return Finding("no-gradient", f"`{name}`: {how}.")
    return None


def close(value: Tensor, right: Tensor, exact: Tensor | None = None) -> Tensor:
    """Entry by entry: within tolerance, or identical where `exact` says so."""
    value, right = value.double(), right.double()
    same = (value == right) | (value.isnan() & right.isnan())
    near = (value - right).abs() <= ATOL + RTOL * right.abs()
    near &= right.isfinite()  # else inf would be near everything
    return same | near if exact is None else torch.where(exact, same, same | near)


def close_gradient(value: Tensor, right: Tensor) -> Tensor:
    value, right = value.double(), right.double()
    scale = max(1.0, float(right.abs().max())) if right.numel() else 1.0
    return (value - right).abs() <= ATOL * scale + RTOL * right.abs()


def _misconception(
    asked: list[tuple[Case, Response]], findings: list[Finding | None]
) -> str | None:
    """The first misconception one variant of which gives what was given, on every case.

    An answer with a second mistake that shows in another way (it raises, overflows or has the
    wrong shape in some cases) is named by what fits the other cases.
    """
    whole = [
        pair
        for pair, finding in zip(asked, findings, strict=True)
        if finding is None or finding.diagnosis not in ("raised", "wrong-shape", "nan", "too-slow")
    ]
    return _fitting(asked) or _fitting(whole)


def _fitting(asked: list[tuple[Case, Response]]) -> str | None:
    if all(response.plain.raised for _, response in asked):
        return None  # no values, no evidence
    for slug, variants in asked[0][0].misconceptions.items():
        for index in range(len(variants)):
            known = [(case, response, case.misconceptions[slug][index]) for case, response in asked]
            # Where values give a mistake away, it may raise elsewhere in any way.
            strict = not any(
                response.plain.raised is None and not same_outcome(case.expected, outcome)
                for case, response, outcome in known
            )
            fits = all(
                same_outcome(response.plain, outcome, strict) for _, response, outcome in known
            )
            if fits and any(not same_outcome(case.expected, outcome) for case, _, outcome in known):
                return slug
    return None


def same_outcome(given: Outcome, known: Outcome, same_exception: bool = True) -> bool:
    """Both give the same values within tolerance, or both raise; what is unclear fits all."""
    if known.kind == UNCLEAR:
        return True
    if known.raised is not None or given.raised is not None:
        return (
            known.raised is not None
            and given.raised is not None
            and given.raised.type != TIME_LIMIT
            and (given.raised.type == known.raised.type or not same_exception)
        )
    return (
        given.kind == known.kind
        and len(given.values) == len(known.values)
        and all(
            value.shape == right.shape and bool(close(value, right).all())
            for value, right in zip(given.values, known.values, strict=True)
        )
    )


def _pattern(
    spec: Spec, asked: list[tuple[Case, Response]], findings: list[Finding | None]
) -> str | None:
    """A diagnosis from which cases fail: only those with one trait, or one number of dimensions."""
    failed = [case for (case, _), finding in zip(asked, findings, strict=True) if finding]
    passed = [case for (case, _), finding in zip(asked, findings, strict=True) if not finding]
    if not passed or any(finding and finding.diagnosis == "too-slow" for finding in findings):
        return None
    values_right = {"no-gradient", "input-changed", "result-changed", "wrong-dtype"}
    if all(finding is None or finding.diagnosis in values_right for finding in findings):
        return None
    for trait, slug in spec.trait_diagnoses.items():
        if all(trait in case.traits for case in failed):
            return slug
    # Sizes that are equal or 1, and scores so large that all scales agree, pass by chance.
    leading_failed, leading_passed = (
        {case.leading for case in some if _tells_sizes_apart(case)} for some in (failed, passed)
    )
    if leading_failed and leading_passed and not leading_failed & leading_passed:
        return "no-batch"
    return None


def _tells_sizes_apart(case: Case) -> bool:
    tensors = [value for value in case.question.arguments.values() if isinstance(value, Tensor)]
    return "large" not in case.traits and all(
        len({1, *tensor.shape}) == tensor.ndim + 1 for tensor in tensors
    )


def _is_stub(response: Response) -> bool:
    return any(
        outcome.raised is not None and outcome.raised.is_stub
        for outcome in (response.plain, response.traced)
    )


def _raised_detail(raised: Raised, seconds: float) -> tuple[str, str]:
    if raised.type == TIME_LIMIT:
        return "too-slow", f"it was stopped after {seconds:g} s."
    text = f"{raised.type}: {raised.message}" if raised.message else raised.type
    place = f"\n    {raised.line}\n({raised.where})" if raised.line else ""
    return "raised", text + place


def _banned_detail(spec: Spec, names: list[str]) -> str:
    kinds = [text for group in spec.banned for text, is_in in [GROUPS[group]] if is_in(names[0])]
    return f"It calls `{names[0].lstrip('_')}`, which is {kinds[0] if kinds else 'ready-made'}."


def _what_is_wanted(spec: Spec) -> str:
    if len(spec.outputs) == 1:
        return "a tensor"
    return f"{len(spec.outputs)} tensors ({', '.join(spec.outputs)})"


def _where(case: Case) -> str:
    shapes = ", ".join(
        f"{name} {tuple(value.shape)}" if isinstance(value, Tensor) else f"{name}={value}"
        for name, value in case.question.arguments.items()
    )
    return f"{case.name} ({shapes})"


def _number(value: Tensor) -> str:
    number = value.item()
    return str(number) if isinstance(number, bool | int) else f"{number:.6g}"


def _verdict(spec: Spec, status: str, diagnosis: str | None, detail: str) -> Verdict:
    points = spec.points if status == PASSED else 0.0
    if status == PASSED:
        text = f"Passed: {points_text(points)} of {points_text(spec.points)} points."
        return Verdict(spec.id, status, points, spec.points, None, text)
    sentence = {**GENERIC_DIAGNOSES, **spec.diagnoses}.get(diagnosis or "", "")
    lead = sentence or "The values are not right."
    message = "\n".join(part for part in (lead, detail) if part)
    return Verdict(spec.id, status, points, spec.points, diagnosis, message)
