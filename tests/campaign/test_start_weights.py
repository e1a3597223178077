"""Policies and critics that start from weights on disk."""

import asyncio
from pathlib import Path

import pytest
import torch

from t1x.campaign.manifest import describe, write_manifest
from t1x.campaign.start import CheckpointStart, NamedStart, ScratchStart
from t1x.model.checkpoint import save_pretrained
from t1x.model.qwen3_moe import Qwen3Moe

SPEC = Qwen3Moe(
    vocab_size=16,
    hidden_size=8,
    num_hidden_layers=1,
    num_attention_heads=2,
    num_key_value_heads=1,
    head_dim=4,
    num_experts=2,
    num_experts_per_tok=1,
    moe_intermediate_size=4,
    max_position_embeddings=8,
)


def same(one: torch.nn.Module, other: torch.nn.Module) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one.state_dict().values(), other.state_dict().values(), strict=True))


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """A policy and a critic that has learned something."""
    save_pretrained(SPEC.build(1), tmp_path / "policy")
    critic = SPEC.build_value(2)
    torch.nn.init.ones_(critic.score.weight)
    save_pretrained(critic, tmp_path / "critic")
    return tmp_path


@pytest.mark.parametrize("wrap", [lambda start: start, lambda start: NamedStart(name="x", source=start)])
def test_a_critic_starts_from_a_value_model_with_its_head(stored: Path, wrap) -> None:
    start = wrap(CheckpointStart(path=stored / "critic"))
    start.check(SPEC, critic=True)
    critic = SPEC.build_value(3)
    start.prepare_critic(critic, None)
    assert float(critic.score.weight.sum()) == SPEC.hidden_size
    assert same(critic.model, SPEC.build_value(2).model)


def test_a_critic_starts_from_a_policy_with_a_head_of_zeros(stored: Path) -> None:
    start = CheckpointStart(path=stored / "policy")
    start.check(SPEC, critic=True)
    critic = SPEC.build_value(3)
    start.prepare_critic(critic, None)
    assert not critic.score.weight.any()
    assert same(critic.model, SPEC.build(1).model)


def test_a_critic_from_scratch_has_a_decoder_of_its_own_and_a_head_of_zeros() -> None:
    critic = SPEC.build_value(3)
    ScratchStart().prepare_critic(critic, None)
    assert same(critic, SPEC.build_value(3))
    assert not critic.score.weight.any()


def test_a_policy_cannot_start_from_a_value_model(stored: Path) -> None:
    with pytest.raises(ValueError, match="Qwen3MoeForTokenClassification"):
        CheckpointStart(path=stored / "critic").check(SPEC)


def test_a_critic_of_another_architecture_is_refused(stored: Path) -> None:
    other = SPEC.model_copy(update={"num_experts_per_tok": 2})
    for network in ("policy", "critic"):
        with pytest.raises(ValueError, match="num_experts_per_tok = 1"):
            CheckpointStart(path=stored / network).check(other, critic=True)


def test_a_named_start_is_its_source(stored: Path) -> None:
    class Holder:
        policy = SPEC.build(5)
        experiment = None

    asyncio.run(NamedStart(name="x", source=CheckpointStart(path=stored / "policy")).prepare(Holder()))
    assert same(Holder.policy, SPEC.build(1))


def test_weights_of_a_checkpoint_that_were_damaged_since_are_refused(stored: Path) -> None:
    write_manifest(stored, describe(stored, "step-1", 1, "weights"))
    weights = stored / "policy" / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    CheckpointStart(path=stored / "critic").check(SPEC, critic=True)
    with pytest.raises(ValueError, match=r"is damaged: policy/model\.safetensors has changed since it was written; use another"):
        CheckpointStart(path=stored / "policy").check(SPEC)
