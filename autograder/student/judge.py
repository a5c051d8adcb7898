"""Comparing responses with cases, and naming the mistake.

Right means equal to the reference within RTOL and ATOL; gradients within RTOL and
ATOL * max(1, the largest gradient of that tensor); entries marked exact, exactly.
A misconception is named where it fits the responses to every case.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from torch import Tensor

from autograder.student.bans import GROUPS
from autograder.student.cases import UNCLEAR, Case, Outcome, Raised, Response, Spec
from autograder.student.evaluation import NO_MODULE, TIME_LIMIT
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
    valued = [
        response
        for case, response in asked
        if case.expected.raised is None and case.question.arguments
    ]
    if valued and all(_is_stub(response) for response in valued):
        return _verdict(spec, MISSING, "not-implemented", "")
    banned = [name for response in responses for name in response.banned]
    if banned:
        return _verdict(spec, FAILED, "banned-call", _banned_detail(spec, banned))
    found = findings(spec, cases, responses)
    failing = [index for index, finding in enumerate(found) if finding is not None]
    if not failing:
        if len(responses) < len(cases):
            return _verdict(spec, FAILED, "raised", "The answers stopped before the last case.")
        return _verdict(spec, PASSED, None, "")
    misconception = _misconception(asked, found)
    named = misconception or _pattern(spec, asked, found)
    # A misconception is told by its values, also where the answer raises elsewhere.
    first = _most_telling(found, [None, *_ORDER] if misconception else _ORDER)
    assert first is not None
    named = named or spec.renamed.get(first.diagnosis or "", first.diagnosis)
    detail = f"On {_where(spec, cases[found.index(first)])}: {first.detail}"
    if not misconception:
        detail += what_else_shows(asked, [finding is not None for finding in found])
    return _verdict(spec, FAILED, named, detail)


def findings(spec: Spec, cases: list[Case], responses: list[Response]) -> list[Finding | None]:
    """What is wrong with each response, before a name is looked for that fits them all."""
    return [_find(spec, case, response) for case, response in zip(cases, responses, strict=False)]


def in_time(response: Response) -> bool:
    """False where the answer was stopped: there is no time left for a further question."""
    stopped = [response.plain.raised, response.traced.raised, response.gradient_error]
    return not any(raised and raised.type == TIME_LIMIT for raised in stopped)


# Which finding to show where cases fail in several ways: the earlier one explains the later.
_ORDER: list[str | None] = [
    "too-slow",
    "wrong-parameters",
    "frozen-parameters",
    "raised",
    "wrong-type",
    "wrong-shape",
    "input-changed",
    "nan",
    "unrepeatable",
    None,
    "untrained",
    "wrong-dtype",
    "result-changed",
    "no-gradient",
    "no-value-error",
]


def _most_telling(findings: list[Finding | None], order: list[str | None]) -> Finding | None:
    present = [finding for finding in findings if finding is not None]
    return min(present, key=lambda finding: order.index(finding.diagnosis), default=None)


def _find(spec: Spec, case: Case, response: Response) -> Finding | None:
    """What is wrong with a response, in the order in which a student should hear it."""
    if case.expected.raised is not None:
        return _compare_error(response.plain, spec) or _compare_error(response.traced, spec)
    has_module = response.plain.raised is None and not response.plain.kind.endswith(NO_MODULE)
    if case.question.setup is not None and has_module:
        faults = _parameter_faults(case.question.setup.parameters, response, spec.renamed)
        if faults is not None:
            return faults
    found = _compare(spec, case, response.plain)
    if spec.accuracy:
        return found
    if response.unrepeatable:
        return Finding("unrepeatable", (found.detail if found else "called twice, it differs."))
    if found is None and response.changed_inputs:
        names = ", ".join(f"`{name}`" for name in response.changed_inputs)
        return Finding("input-changed", f"after the call {names} is no longer what it was.")
    if found is None and response.changed_results:
        return Finding("result-changed", "the result of an earlier call is no longer what it was.")
    found = found or _compare(spec, case, response.traced)
    return found or _compare_gradients(spec, case, response)


def _compare_error(outcome: Outcome, spec: Spec) -> Finding | None:
    """Where a ValueError is due: none came, or another exception."""
    raised = outcome.raised
    if raised is None:
        return Finding("no-value-error", "expected a ValueError, none came.")
    if raised.is_value_error:
        return None
    diagnosis, detail = _raised_detail(raised, spec.time_limit)
    if diagnosis == "raised":
        return Finding("no-value-error", f"expected a ValueError, got {detail}")
    return Finding(diagnosis, detail)


def _parameter_faults(
    wanted: dict[str, Tensor], response: Response, renamed: dict[str, str]
) -> Finding | None:
    """How the module's parameters differ from the ones asked for, by name and shape."""
    given = response.parameters
    missing = [name for name in wanted if name not in given]
    extra = [name for name in given if name not in wanted]
    misshapen = [
        f"`{name}` has shape {tuple(given[name])}, it should have {tuple(value.shape)}."
        for name, value in wanted.items()
        if name in given and given[name] != list(value.shape)
    ]
    if not (missing or extra or misshapen):
        return None
    only_frozen = not (missing or misshapen) and set(extra) <= set(response.frozen)
    parts = [f"Missing: {_some(missing)}."] if missing else []
    parts += [f"Not asked for: {_some(extra)}."] if extra else []
    frozen = only_frozen and "frozen-parameters" in renamed
    kind = "frozen-parameters" if frozen else "wrong-parameters"
    return Finding(kind, " ".join(parts + misshapen[:2]))


def _some(names: list[str]) -> str:
    """The first few of them."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(f"`{name}`" for name in names[:3]) + more


def _compare(spec: Spec, case: Case, outcome: Outcome) -> Finding | None:
    expected = case.expected
    if outcome.raised is not None:
        return Finding(*_raised_detail(outcome.raised, spec.time_limit))
    if spec.accuracy and outcome.values:
        return _compare_share(spec.accuracy, outcome.values[0], expected.values[0])
    if outcome.kind != expected.kind or len(outcome.values) != len(expected.values):
        wanted = _what_is_wanted(case)
        came = outcome.kind if outcome.kind != "sequence" else f"{len(outcome.values)} tensors"
        came = "a single tensor" if came == "tensor" else came
        return Finding("wrong-type", f"expected {wanted}, got {came}.")
    pairs = list(zip(case.outputs, outcome.values, expected.values, strict=True))
    for name, value, right in pairs:
        if value.shape != right.shape:
            shapes = f"expected shape {tuple(right.shape)}, got {tuple(value.shape)}."
            return Finding("wrong-shape", f"{name}: {shapes}")
    for index, (name, value, right) in enumerate(pairs):
        exact = case.exact[index] if case.exact else None
        wrong = ~close(value, right, exact)
        if bool(wrong.any()) and not _is_right_but_coarse(value, right):
            finding = _value_finding(name, value, right, wrong)
            more = _broken_property(spec, name, value, wrong)
            return replace(finding, detail=finding.detail + more)
    for name, value, right in pairs:
        if value.dtype != right.dtype:
            return Finding("wrong-dtype", f"{name}: expected {right.dtype}, got {value.dtype}.")
    return None


def _is_right_but_coarse(value: Tensor, right: Tensor) -> bool:
    """Whether a floating-point dtype of fewer bits is all that is wrong with the values."""
    if value.dtype not in (torch.float16, torch.bfloat16):
        return False
    return torch.allclose(
        value.double(), right.double(), rtol=8 * torch.finfo(value.dtype).eps, atol=3e-2
    )


def _compare_share(least: float, value: Tensor, right: Tensor) -> Finding | None:
    """Whether at least that share of rows is right as a whole."""
    if value.shape != right.shape:
        return Finding("wrong-shape", f"expected {tuple(right.shape)}, got {tuple(value.shape)}.")
    share = float((value == right).all(-1).double().mean())
    if share >= least:
        return None
    return Finding("untrained", f"{share:.1%} of the answers are right, {least:.0%} are asked for.")


def _value_finding(name: str, value: Tensor, right: Tensor, wrong: Tensor) -> Finding:
    place = tuple(int(n) for n in wrong.nonzero()[0])
    index = f"[{', '.join(map(str, place))}]" if place else ""
    came, wanted = _number(value[place]), _number(right[place])
    detail = f"{name}{index} should be {wanted}, yours is {came}"
    detail += f" ({int(wrong.sum())} of {wrong.numel()} entries differ)." if place else "."
    if bool((value.isnan() & ~right.isnan()).any()):
        return Finding("nan", detail)
    return Finding(None, detail)


def _broken_property(spec: Spec, name: str, value: Tensor, wrong: Tensor) -> str:
    """What is wrong as a whole: rows that do not sum to 1, all heads but one."""
    where = _only_right_where(spec.axes.get(name, []), wrong)
    if name not in spec.distributions:
        return where
    sums = value.sum(-1)
    if not bool(close(sums, torch.ones_like(sums)).all()):
        worst = (sums - 1).abs().nan_to_num(torch.inf).argmax()
        found = _number(sums.flatten()[worst])
        return f"{where} Rows of {name} should sum to 1; one of yours sums to {found}."
    if bool((value < 0).any()):
        return f"{where} Probabilities are never negative; {name} has negative entries."
    return f"{where} Each row of {name} sums to 1, but the share of each entry is not right."


def _only_right_where(axes: list[str], wrong: Tensor) -> str:
    """` Head 1 alone is right.`, by the first of the named last dimensions that parts them."""
    for number, axis in enumerate(axes):
        place = wrong.ndim - len(axes) + number
        if place < 0:
            continue
        others = [dim for dim in range(wrong.ndim) if dim != place]
        per_index = wrong.any(others) if others else wrong  # torch's any() of no dims takes all
        right = [index for index, fails in enumerate(per_index.tolist()) if not fails]
        if 0 < len(right) < len(per_index):
            if len(right) == 1:
                return f" {axis.capitalize()} {right[0]} alone is right."
            failing = [index for index in range(len(per_index)) if index not in right]
            if len(failing) == 1:
                return f" {axis.capitalize()} {failing[0]} alone is wrong."
            return f" {axis.capitalize()}s {_listing(right)} are right, the others are not."
    return ""


def _listing(numbers: list[int]) -> str:
    if len(numbers) > 2 and numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]} to {numbers[-1]}"
    return " and ".join(
        part for part in (", ".join(map(str, numbers[:-1])), str(numbers[-1])) if part
    )


def _compare_gradients(spec: Spec, case: Case, response: Response) -> Finding | None:
    if response.gradient_error is not None:
        diagnosis, detail = _raised_detail(response.gradient_error, spec.time_limit)
        if diagnosis == "raised":
            return Finding("no-gradient", f"with gradients it raised {detail}")
        return Finding(diagnosis, detail)
    for name, right in case.gradients.items():
        found = response.gradients.get(name)
        value = torch.zeros_like(right) if found is None else found
        if value.shape != right.shape:
            return Finding("no-gradient", f"`{name}`: its gradient has another shape.")
        wrong = ~close_gradient(value, right) & ~case.free_gradients.get(name, _nowhere(right))
        if bool(wrong.any()):
            how = "no gradient reaches it" if found is None else "its gradient is wrong"
            return Finding("no-gradient", f"`{name}`: {how}.")
        inexact = (value != right) & case.exact_gradients.get(name, _nowhere(right))
        if bool(inexact.any()):
            return _value_finding(f"the gradient of {name}", value, right, inexact)
    return None


def _nowhere(tensor: Tensor) -> Tensor:
    return torch.zeros_like(tensor, dtype=torch.bool)


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
        if finding is None or finding.diagnosis not in _SHOWN_OTHERWISE
    ]
    return _fitting(asked) or _fitting(whole)


_SHOWN_OTHERWISE = ("raised", "wrong-shape", "nan", "too-slow")


def _fitting(asked: list[tuple[Case, Response]]) -> str | None:
    if all(response.plain.raised for _, response in asked):
        return None  # no values, no evidence
    asked = [(case, response) for case, response in asked if case.misconceptions]
    if not asked:
        return None
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


_VALUES_RIGHT = (
    "no-gradient",
    "input-changed",
    "result-changed",
    "wrong-dtype",
    "wrong-parameters",
    "frozen-parameters",
    "unrepeatable",
)


def _pattern(
    spec: Spec, asked: list[tuple[Case, Response]], findings: list[Finding | None]
) -> str | None:
    """A diagnosis from which cases fail: only those with one trait, or one number of dimensions."""
    judged = [
        (case, finding)
        for (case, _), finding in zip(asked, findings, strict=True)
        if case.expected.raised is None and case.question.arguments
    ]
    failed = [case for case, finding in judged if finding]
    passed = [case for case, finding in judged if not finding]
    if not passed or any(finding and finding.diagnosis == "too-slow" for finding in findings):
        return None
    if all(finding is None or finding.diagnosis in _VALUES_RIGHT for _, finding in judged):
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


REVERSED = "reversed"  # the trait of a case that is the one before with its first dimension flipped


def what_else_shows(asked: list[tuple[Case, Response]], fails: list[bool]) -> str:
    """Help that needs several cases: one sequence depends on another, one size alone is right."""
    for (_, before), (case, response) in pairwise(asked):
        if REVERSED in case.traits and before.plain.values and response.plain.values:
            first, second = before.plain.values[0], response.plain.values[0]
            steady = not (before.unrepeatable or response.unrepeatable)
            comparable = steady and first.ndim > 0 and first.shape == second.shape
            if comparable and not bool(close(first.flip(0), second).all()):
                return "\nYour result for one entry of a batch depends on the others in it."
    sizes = [_plain_sizes(case) for case, _ in asked]
    for name in {name for size in sizes for name in size}:
        failed = {size.get(name) for size, fail in zip(sizes, fails, strict=True) if fail}
        passed = {size.get(name) for size, fail in zip(sizes, fails, strict=True) if not fail}
        told = [str(value) for value in sorted(value for value in passed if value is not None)]
        apart = told and len(told) == len(passed) and not passed & failed
        if apart and len(told) <= 3 < len(passed | failed):
            return f"\nIt is right only where {name} is {' or '.join(told)}."
    return ""


def _plain_sizes(case: Case) -> dict[str, int]:
    """Those that a module is built with, and the number of heads: others come as they come."""
    setup = case.question.setup.arguments if case.question.setup else {}
    heads = {name: value for name, value in case.question.arguments.items() if name == "n_heads"}
    return {name: value for name, value in (setup | heads).items() if isinstance(value, int)}


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


def _what_is_wanted(case: Case) -> str:
    if case.question.probe == "training":
        return "a float"
    if case.expected.kind == "tensor" or case.question.probe:
        return "a tensor"
    return f"{len(case.outputs)} tensors ({', '.join(case.outputs)})"


def _where(spec: Spec, case: Case) -> str:
    shapes = ", ".join(
        f"{name} {tuple(value.shape)}" if isinstance(value, Tensor) else f"{name}={value}"
        for name, value in case.question.arguments.items()
    )
    if case.question.setup is None:
        return f"{case.name} ({shapes})"
    built = ", ".join(f"{name}={value}" for name, value in case.question.setup.arguments.items())
    call = f"{spec.id.partition('.')[0]}({built})"
    return f"{case.name} ({call}, {shapes})" if shapes else f"{case.name} ({call})"


def _number(value: Tensor) -> str:
    number = value.item()
    # Plus 0, which makes a 0 of -0.
    return str(number) if isinstance(number, bool | int) else f"{number + 0:.6g}"


def _verdict(spec: Spec, status: str, diagnosis: str | None, detail: str) -> Verdict:
    points = spec.points if status == PASSED else 0.0
    if status == PASSED:
        text = f"Passed: {points_text(points)} of {points_text(spec.points)} points."
        return Verdict(spec.id, status, points, spec.points, None, text)
    sentence = {**GENERIC_DIAGNOSES, **spec.diagnoses}.get(diagnosis or "", "")
    lead = sentence or "The values are not right."
    message = "\n".join(part for part in (lead, detail) if part)
    return Verdict(spec.id, status, points, spec.points, diagnosis, message)
