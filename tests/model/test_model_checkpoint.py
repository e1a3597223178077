import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from t1x.model.checkpoint import load_hf, load_pretrained, require_same, save_pretrained, to_hf
from t1x.model.qwen3_moe import Qwen3Moe
from t1x.model.value import ValueModel

SPEC = Qwen3Moe(
    vocab_size=50,
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=8,
    num_experts=4,
    num_experts_per_tok=2,
    moe_intermediate_size=12,
    max_position_embeddings=64,
)


@pytest.mark.parametrize("tied", [True, False])
def test_what_is_written_reads_back_to_the_same_bits(tied: bool, tmp_path: Path) -> None:
    spec = SPEC.model_copy(update={"tie_word_embeddings": tied, "rope_theta": 77.0})
    policy = spec.build(seed=1)
    save_pretrained(policy, tmp_path / "a" / "policy")
    read = load_pretrained(tmp_path / "a" / "policy")
    assert read.config == spec
    assert ("lm_head.weight" in to_hf(policy)) is not tied
    for name, parameter in policy.named_parameters():
        assert torch.equal(parameter, read.get_parameter(name)), name
    assert sorted(p.name for p in (tmp_path / "a").rglob("*")) == ["config.json", "model.safetensors", "policy"]


def test_critic_starts_from_policy_with_zero_head_and_survives_the_disk(tmp_path: Path) -> None:
    policy, critic = SPEC.build(seed=1), SPEC.build_value(seed=2)
    ids = torch.randint(0, 50, (3, 9), generator=torch.Generator().manual_seed(0))
    assert torch.equal(critic(ids), torch.zeros(3, 9))
    critic.start_from(policy)
    torch.nn.init.normal_(critic.score.weight)
    expected = policy(ids).hidden @ critic.score.weight[0] + critic.score.bias
    torch.testing.assert_close(critic(ids), expected)
    keep = torch.rand(3, 9) < 0.5
    torch.testing.assert_close(critic(ids, keep=keep), expected[keep])
    save_pretrained(critic, tmp_path / "critic")
    assert torch.equal(load_pretrained(tmp_path / "critic", ValueModel)(ids), critic(ids))
    with pytest.raises(ValueError, match="expected Qwen3MoeForCausalLM"):
        load_pretrained(tmp_path / "critic")


def test_weights_that_dont_fit_change_nothing() -> None:
    policy = SPEC.build(seed=1)
    before = {name: tensor.clone() for name, tensor in to_hf(policy).items()}
    other = {name: tensor.clone() for name, tensor in to_hf(SPEC.build(seed=2)).items()}
    name = "model.layers.1.mlp.experts.3.up_proj.weight"
    with pytest.raises(ValueError, match=f"missing \\['{name}'\\]"):
        load_hf(policy, {k: v for k, v in other.items() if k != name})
    with pytest.raises(ValueError, match=r"unknown \['extra'\]"):
        load_hf(policy, other | {"extra": torch.zeros(1)})
    with pytest.raises(ValueError, match=r"up_proj.weight has shape \(1,\), the model needs \(12, 16\)"):
        load_hf(policy, other | {name: torch.zeros(1)})
    assert all(torch.equal(tensor, before[name]) for name, tensor in to_hf(policy).items())
    load_hf(policy, other)
    assert all(torch.equal(tensor, other[name]) for name, tensor in to_hf(policy).items())


def test_folders_that_hold_no_model_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no readable model"):
        load_pretrained(tmp_path)
    save_pretrained(SPEC.build(seed=1), tmp_path / "model")
    with pytest.raises(ValueError, match="exists already"):
        save_pretrained(SPEC.build(seed=1), tmp_path / "model")
    (tmp_path / "model" / "model.safetensors").write_bytes(b"garbage")
    with pytest.raises(ValueError, match="no readable model"):
        load_pretrained(tmp_path / "model")
    (tmp_path / "model" / "model.safetensors").unlink()
    with pytest.raises(ValueError, match=r"no .safetensors file"):
        load_pretrained(tmp_path / "model")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"hidden_size": "x"}, "config.json: hidden_size: "),
        ({"hidden_size": None}, "config.json: hidden_size: "),
        ({"hidden_size": 32}, "no readable model: weight "),
        ({"architectures": None}, "holds None"),
        ({"rope_parameters": "x"}, "rope_parameters = 'x'"),
    ],
)
def test_a_config_that_describes_no_model_is_refused_with_its_folder(tmp_path: Path, change: dict, said: str) -> None:
    folder = tmp_path / "model"
    save_pretrained(SPEC.build(seed=1), folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(ValueError, match="model") as refused:
        load_pretrained(folder)
    assert str(folder) in str(refused.value)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_same_weights_in_another_architecture_are_another_model() -> None:
    """Top-k, heads and RoPE change what is computed, not the shape of a single weight."""
    require_same(SPEC, SPEC.model_copy(update={"max_position_embeddings": 9, "router_init_std": 1.0}), "there")
    for change in ({"num_experts_per_tok": 1}, {"rope_theta": 5.0}, {"norm_topk_prob": not SPEC.norm_topk_prob}):
        ((name, value),) = change.items()
        with pytest.raises(ValueError, match=rf"there holds another model: {name} = .*the experiment has {value}"):
            require_same(SPEC, SPEC.model_copy(update=change), "there")


def test_seeds_decide_initial_weights() -> None:
    first, again, other = (to_hf(SPEC.build(seed=seed)) for seed in (1, 1, 2))
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["lm_head.weight"], other["lm_head.weight"])
    big = SPEC.model_copy(update={"hidden_size": 400, "vocab_size": 1000}).build(seed=0).model
    assert big.embed_tokens.weight.std().item() == pytest.approx(0.1, rel=0.02)
    assert big.layers[0].attention.qkv.weight.std().item() == pytest.approx(400**-0.5, rel=0.02)
    assert big.layers[0].moe.down.std().item() == pytest.approx(12**-0.5 / 2, rel=0.03)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"num_key_value_heads": 3}, "multiple of"),
        ({"head_dim": 7}, "must be even"),
        ({"num_experts_per_tok": 5}, "exceeds num_experts"),
        ({"num_experts": 65_537}, "65536"),
    ],
)
def test_sizes_that_dont_fit_are_refused(change: dict, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        Qwen3Moe(**SPEC.model_dump() | change)


def test_components_import_no_torch() -> None:
    code = "import sys, t1x.model.qwen3_moe, t1x.engine.embedded, t1x.engine.scripted; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
