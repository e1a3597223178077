"""Against transformers' Qwen3-MoE on the same files."""

from pathlib import Path

import pytest
import torch
from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

from t1x.model.checkpoint import load_pretrained, save_pretrained
from t1x.model.qwen3_moe import Qwen3Moe

torch.set_num_threads(1)

SIZES = {
    "vocab_size": 61,
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "head_dim": 8,
    "num_experts": 6,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
    "max_position_embeddings": 64,
}
VARIANTS = [
    pytest.param(
        {"num_attention_heads": 4, "num_key_value_heads": kv, "norm_topk_prob": norm, "tie_word_embeddings": tied}, id=name
    )
    for name, kv, norm, tied in [
        ("gqa-norm-tied", 2, True, True),
        ("gqa-share-untied", 2, False, False),
        ("mqa-norm-untied", 1, True, False),
        ("mha-share-tied", 4, False, True),
    ]
]


@pytest.mark.parametrize("variant", VARIANTS)
def test_ours_loads_in_transformers(variant: dict, tmp_path: Path) -> None:
    model = Qwen3Moe(**SIZES, **variant, rope_theta=5000.0).build(seed=3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(parameter.numel())) * 0.05)
    save_pretrained(model, tmp_path / "model")
    theirs = Qwen3MoeForCausalLM.from_pretrained(tmp_path / "model", dtype=torch.float32)
    ids = torch.randint(0, 61, (3, 40), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        ours, reference = model.logits(model(ids).hidden), theirs(ids).logits
    assert reference.std() > 0.1
    torch.testing.assert_close(ours, reference, atol=1e-5, rtol=0)


@pytest.mark.parametrize("variant", VARIANTS)
def test_transformers_loads_in_ours(variant: dict, tmp_path: Path) -> None:
    torch.manual_seed(5)
    config = Qwen3MoeConfig(
        **SIZES, **variant, rope_parameters={"rope_theta": 5000.0, "rope_type": "default"}, initializer_range=0.15
    )
    theirs = Qwen3MoeForCausalLM(config).eval()
    theirs.save_pretrained(tmp_path / "model")
    model = load_pretrained(tmp_path / "model")
    assert model.config.rope_theta == 5000.0
    ids = torch.randint(0, 61, (3, 40), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        output = model(ids)
        reference = theirs(ids, output_router_logits=True)
    torch.testing.assert_close(model.logits(output.hidden), reference.logits, atol=1e-5, rtol=0)
    for layer, logits in enumerate(reference.router_logits):
        chosen = logits.float().softmax(-1).topk(2).indices.view(3, 40, 2)
        assert torch.equal(output.routed_experts[:, :, layer], chosen)
