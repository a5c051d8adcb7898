"""How modules are judged: built, loaded, called again, moved, and asked for a ValueError."""

from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from autograder.build.cases import build_public_cases
from autograder.exercises import TOPICS
from autograder.exercises.posing import Draw, reversed_batch
from autograder.student.cases import CaseSet, Question, Setup, laid_out, parse_question, to_data
from autograder.student.check import judge_answer
from autograder.student.evaluation import Evaluator
from autograder.student.probes import NextTokenModel, generation, sums, training
from autograder.student.verdicts import MISSING, Verdict
from solutions import multi_head_attention as heads
from solutions import positional_encoding as positions
from solutions import training as trained
from solutions.multi_head_attention import MultiHeadAttention


@cache
def public(topic: str) -> CaseSet:
    return build_public_cases(TOPICS[topic])


def attention_verdict(answer: Any) -> Verdict:
    return judge_answer(public("02_multi_head_attention"), "MultiHeadAttention", answer)


def test_the_reference_passes() -> None:
    assert attention_verdict(MultiHeadAttention).passed


class SeparateProjections(nn.Module):
    """Right but for the names of its parameters."""

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        if d_model % n_heads:
            raise ValueError
        self.n_heads = n_heads
        self.q, self.k, self.v, self.o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (heads.split_heads(f(x), self.n_heads) for f in (self.q, self.k, self.v))
        weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
        output: Tensor = self.o(heads.merge_heads(weights @ v))
        return output


def test_other_names_are_wrong_parameters_and_told_by_name() -> None:
    verdict = attention_verdict(SeparateProjections)
    assert verdict.diagnosis == "wrong-parameters"
    assert "Missing: `qkv.weight`" in verdict.message


def test_a_further_name_of_a_parameter_is_no_parameter_more() -> None:
    class Aliased(MultiHeadAttention):
        def __init__(self, d_model: int, n_heads: int) -> None:
            super().__init__(d_model, n_heads)
            self.projections = nn.ModuleList([self.qkv, self.out_proj])

    assert attention_verdict(Aliased).passed


def test_a_parameter_that_is_not_used_is_one_too_many() -> None:
    class Wider(MultiHeadAttention):
        def __init__(self, d_model: int, n_heads: int) -> None:
            super().__init__(d_model, n_heads)
            self.spare = nn.Linear(2, 2)

    assert attention_verdict(Wider).diagnosis == "wrong-parameters"


def test_a_misconception_is_named_also_where_a_parameter_is_missing() -> None:
    class Bare(MultiHeadAttention):
        def __init__(self, d_model: int, n_heads: int) -> None:
            super().__init__(d_model, n_heads)
            del self.out_proj

        def forward(self, x: Tensor) -> Tensor:
            self.__dict__["out_proj"] = lambda merged: merged
            return super().forward(x)

    assert attention_verdict(Bare).diagnosis == "no-out-proj"


@pytest.mark.parametrize("error", [ValueError, UnicodeError])
def test_any_value_error_will_do(error: type[Exception]) -> None:
    class Own(MultiHeadAttention):
        def __init__(self, d_model: int, n_heads: int) -> None:
            if d_model % n_heads:
                raise error
            super().__init__(d_model, n_heads)

    assert attention_verdict(Own).passed


@pytest.mark.parametrize("error", [AssertionError, TypeError, None])
def test_another_exception_is_no_value_error(error: type[Exception] | None) -> None:
    class Other(MultiHeadAttention):
        def __init__(self, d_model: int, n_heads: int) -> None:
            if d_model % n_heads and error:
                raise error
            super().__init__(n_heads * max(1, d_model // n_heads), n_heads)

    assert attention_verdict(Other).diagnosis == "no-value-error"


def test_dropout_that_is_left_on_is_unrepeatable() -> None:
    class Dropping(MultiHeadAttention):
        def forward(self, x: Tensor) -> Tensor:
            return nn.functional.dropout(super().forward(x), 0.5, self.training)

    assert attention_verdict(Dropping).diagnosis == "unrepeatable"


def test_a_module_that_remembers_its_first_call_fails() -> None:
    class Remembering(MultiHeadAttention):
        first: Tensor | None = None

        def forward(self, x: Tensor) -> Tensor:
            result = super().forward(x)
            if self.first is None or self.first.shape != result.shape:
                self.first = result
            return self.first

    assert not attention_verdict(Remembering).passed


def test_a_module_that_trains_itself_fails() -> None:
    class Drifting(MultiHeadAttention):
        def forward(self, x: Tensor) -> Tensor:
            result = super().forward(x)
            with torch.no_grad():
                self.out_proj.bias += 1e-3
            return result

    assert not attention_verdict(Drifting).passed


def test_what_is_no_module_is_a_wrong_type() -> None:
    class Plain:
        def __init__(self, d_model: int, n_heads: int) -> None:
            self.inner = MultiHeadAttention(d_model, n_heads)

        def __call__(self, x: Tensor) -> Tensor:
            return self.inner(x)

    assert attention_verdict(Plain).diagnosis == "wrong-type"


def test_a_batch_that_is_mixed_is_told() -> None:
    class Mixing(MultiHeadAttention):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x + (x[:1] if x.ndim > 2 else 0))

    verdict = attention_verdict(Mixing)
    assert verdict.diagnosis == "no-batch"
    assert "depends on the others" in verdict.message


def test_a_stub_in_forward_alone_is_missing() -> None:
    class Stub(MultiHeadAttention):
        def forward(self, x: Tensor) -> Tensor:
            raise NotImplementedError

    assert attention_verdict(Stub).status == MISSING


def test_judging_draws_no_random_number() -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    attention_verdict(MultiHeadAttention)
    assert torch.equal(before, torch.get_rng_state())


# ---- what must move, what lies otherwise in memory


def test_a_table_that_is_no_buffer_is_told() -> None:
    class Plain(nn.Module):
        def __init__(self, d_model: int, max_len: int) -> None:
            super().__init__()
            self.table = positions.positional_encoding(max_len, d_model)

        def forward(self, x: Tensor) -> Tensor:
            if x.shape[-2] > len(self.table):
                raise ValueError
            return x + self.table[: x.shape[-2]]

    verdict = judge_answer(public("03_positional_encoding"), "PositionalEncoding", Plain)
    assert verdict.diagnosis == "not-a-buffer"


def test_a_view_arrives_as_a_view() -> None:
    view = torch.arange(24.0).reshape(2, 4, 3).transpose(0, 1)
    question = Question({"x": view.contiguous()}, layout={"x": [1, 0, 2]})
    again = parse_question(to_data(question))
    assert again.inputs()["x"].stride() == view.stride()
    assert torch.equal(again.inputs()["x"], view)
    assert laid_out(view, [0, 1, 2]).is_contiguous()


def test_the_reversed_batch_follows_its_case() -> None:
    posed = next(TOPICS["02_multi_head_attention"].exercises[2].cases(Draw(3)))
    turned = reversed_batch(replace(posed, arguments={"x": torch.arange(6.0).reshape(3, 2)}))
    assert turned.arguments["x"][0].tolist() == [4.0, 5.0]
    assert turned.setup is not None
    assert turned.setup.again


def test_a_module_is_built_anew_where_there_is_none_to_call_again() -> None:
    setup = Setup({"d_model": 4, "n_heads": 2}, again=True)
    response = Evaluator(MultiHeadAttention, [], 10.0)(Question({"x": torch.ones(3, 4)}, [], setup))
    assert response.plain.raised is None
    assert response.parameters["qkv.weight"] == [12, 4]


# ---- probes


def weights(vocab: int = 5, width: int = 3) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(2)
    shapes = {"embed": (vocab, width), "now": (width, vocab), "past": (width, vocab)}
    return {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}


def test_the_probe_model_is_causal_and_knows_the_past() -> None:
    model = NextTokenModel(**weights(), max_len=6)
    tokens = torch.tensor([[1, 2, 3, 4]])
    assert torch.equal(model(tokens)[:, :3], model(tokens[:, :3]))
    other = torch.tensor([[4, 2, 3, 4]])
    assert not torch.allclose(model(tokens)[:, 3], model(other)[:, 3])
    with pytest.raises(ValueError, match="at most 6"):
        model(torch.zeros(1, 7, dtype=torch.int64))


def test_training_gives_losses_and_parameters_and_takes_floats_alone() -> None:
    batches = torch.randint(0, 5, (3, 4, 6), generator=torch.Generator().manual_seed(1))
    given = {"batches": batches, "optimizer": "SGD", "settings": {"lr": 0.1}, "stale": True}
    losses, *parameters = training(trained.train_step)(**weights(), **given)
    assert losses.shape == (3,)
    assert len(parameters) == 3
    assert not torch.equal(parameters[0], weights()["embed"])
    wrong = training(lambda model, optimizer, tokens: torch.tensor(1.0))(**weights(), **given)
    assert isinstance(wrong, Tensor)


def test_generation_tells_what_was_left_behind() -> None:
    def careless(model: Any, prompt: Tensor, n_new: int) -> Tensor:
        model.eval()
        model.now.data += 1
        model(prompt)
        return prompt

    given = {"max_len": 9, "prompt": torch.tensor([[1, 2]]), "n_new": 2}
    mode = {"in_training": True, "recording": True}
    _, *state = generation(careless)(**weights(), **given, **mode)
    assert [bool(flag) for flag in state] == [True, False, False, True, True]
    result, *state = generation(trained.generate)(**weights(), **given, **mode)
    assert result.shape == (1, 4)
    assert [bool(flag) for flag in state] == [False, True, True, True, True]


def test_sums_stand_for_a_matrix_that_is_too_large() -> None:
    columns, rows = sums(lambda n: torch.ones(n, n).tril())(3)
    assert columns.tolist() == [3, 2, 1]
    assert rows.tolist() == [1, 2, 3]
    assert sums(lambda n: n)(3) == 3
