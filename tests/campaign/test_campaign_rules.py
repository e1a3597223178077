"""Parts of a campaign that don't fit each other are refused when the file is loaded, with the places that chose them."""

import pytest

from t1x.config import ConfigError, load
from t1x.text.bundled import BundledTokenizer

EXPERIMENT = "experiments/quickstart.gin"


def problem(*settings: str, file: str = EXPERIMENT) -> str:
    with pytest.raises(ConfigError) as refused:
        load(file, site="laptop", set=settings)
    (found,) = refused.value.problems
    return str(found)


def test_a_trial_may_not_outgrow_the_engine() -> None:
    said = problem("ShellHarness.context_tokens = 300", "Campaign.harness = @ShellHarness()", "EmbeddedEngine.context_length = 256")
    assert "300" in said
    assert "context_length" in said
    assert "harness.context_tokens at --set 'ShellHarness" in said
    larger = ["ShellHarness.context_tokens", "EmbeddedEngine.context_length", "Qwen3Moe.max_position_embeddings"]
    load(EXPERIMENT, set=[f"{field} = 300" for field in larger])


def test_the_engine_may_not_outgrow_the_model() -> None:
    said = problem("Qwen3Moe.max_position_embeddings = 255")
    assert "256" in said
    assert "max_position_embeddings" in said
    assert "model.max_position_embeddings at --set" in said
    load(EXPERIMENT, set=["Qwen3Moe.max_position_embeddings = 256"])


def test_the_model_knows_every_id_of_the_tokenizer() -> None:
    said = problem("Qwen3Moe.vocab_size = 699")
    assert "tokenizer BundledTokenizer takes 700 ids, but model Qwen3Moe may sample 699" in said
    assert "Qwen3Moe.vocab_size to 700" in said
    assert "model.vocab_size at --set" in said
    load(EXPERIMENT, set=["Qwen3Moe.vocab_size = 700"])


def test_the_tokenizer_takes_every_id_that_the_model_may_sample() -> None:
    """Models pad their vocabularies."""
    said = problem("Qwen3Moe.vocab_size = 764")
    assert "set BundledTokenizer.vocab_size to the model's, 764" in said
    padded = load(EXPERIMENT, set=["Qwen3Moe.vocab_size = 764", "BundledTokenizer.vocab_size = 764"]).root.tokenizer.build()
    assert (padded.vocab_size, padded.decode([763])) == (764, "")
    assert "greater than or equal to 700" in problem("BundledTokenizer.vocab_size = 699")


def test_the_bundled_tokenizer_says_how_many_ids_it_has() -> None:
    assert BundledTokenizer().vocab_size == BundledTokenizer().build().vocab_size


@pytest.mark.parametrize("owner", ["Experiment", "BenchmarkSuite"])
def test_only_a_harness_of_ids_can_be_stitched_exactly(owner: str) -> None:
    file, field = "experiments/eval_tb21.gin", f"{owner}.harness = @TextShellHarness()"
    said = problem("Experiment.stitcher = @ExactStitcher()", field, file=file)
    assert "harness TextShellHarness encodes its history anew or summarizes it; use @TokenStitcher(), or @ShellHarness()" in said
    assert "stitcher at --set" in said
    load(file, site="laptop", set=["Experiment.stitcher = @ExactStitcher()"])
    load(file, site="laptop", set=[field])


@pytest.mark.parametrize("binding", ["Campaign.temperature = 1e999", "actor/Adam.lr = 1e999", "ClippedSurrogate.clip = 1e999"])
def test_a_number_is_finite(binding: str) -> None:
    assert "finite" in problem(binding)
