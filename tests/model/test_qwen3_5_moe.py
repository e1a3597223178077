"""Numbers of Qwen3.5-MoE against Hugging Face's own network and the report."""

import pytest
import torch
from pydantic import ValidationError
from transformers.models.qwen3_5_moe.configuration_qwen3_5_moe import Qwen3_5MoeTextConfig
from transformers.models.qwen3_5_moe.modeling_qwen3_5_moe import Qwen3_5MoeForCausalLM

from t1x.model.qwen3_5_moe import Qwen3_5Moe

BIG = {
    "num_hidden_layers": 48,
    "num_attention_heads": 32,
    "hidden_size": 3072,
    "moe_intermediate_size": 1024,
    "shared_expert_intermediate_size": 1024,
}
SMALL = {
    "vocab_size": 61,
    "num_hidden_layers": 6,
    "num_attention_heads": 6,
    "num_key_value_heads": 3,
    "head_dim": 8,
    "hidden_size": 20,
    "full_attention_interval": 4,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 5,
    "linear_value_head_dim": 7,
    "linear_conv_kernel_dim": 3,
    "num_experts": 10,
    "num_experts_per_tok": 3,
    "moe_intermediate_size": 12,
    "shared_expert_intermediate_size": 14,
}


def counted(fields: dict[str, int]) -> tuple[int, int]:
    """(routed experts', other) weights of Hugging Face's network, made without memory."""
    with torch.device("meta"):
        network = Qwen3_5MoeForCausalLM(Qwen3_5MoeTextConfig(**fields))
    sizes = {name: weight.numel() for name, weight in network.named_parameters()}
    experts = sum(size for name, size in sizes.items() if ".mlp.experts." in name)
    return experts, sum(sizes.values()) - experts


@pytest.mark.parametrize("fields", [BIG, {**BIG, "linear_num_value_heads": 64}, SMALL, {**SMALL, "full_attention_interval": 2}])
def test_weights_are_those_of_hugging_faces_network(fields):
    model = Qwen3_5Moe(**fields)
    assert (model.expert_parameters, model.dense_parameters) == counted(fields)


def test_the_reports_sizes():
    """Section 7.1: 116.0B expert weights; 121.4B (section 1) to 121.86B (section 7.1) in all."""
    model = Qwen3_5Moe(**BIG, linear_num_value_heads=48)
    assert model.expert_parameters == pytest.approx(116.0e9, abs=0.05e9)
    assert 121.4e9 < model.expert_parameters + model.dense_parameters < 121.9e9
    assert (model.experts, model.routed, model.vocab_size) == (256, True, 248_320)


def test_defaults_are_hugging_faces():
    theirs = Qwen3_5MoeTextConfig()
    set_here = {"max_position_embeddings", "rope_theta", "full_attention_interval", "partial_rotary_factor"}
    for name, field in Qwen3_5Moe.model_fields.items():
        if not field.is_required() and name not in set_here:
            assert field.default == getattr(theirs, name), name
    assert theirs.layer_types.index("full_attention") + 1 == Qwen3_5Moe.model_fields["full_attention_interval"].default
    assert theirs.rope_parameters["partial_rotary_factor"] == Qwen3_5Moe.model_fields["partial_rotary_factor"].default


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"num_key_value_heads": 4}, r"num_attention_heads \(6\) must be a multiple of num_key_value_heads \(4\)"),
        ({"linear_num_value_heads": 3}, r"linear_num_value_heads \(3\) must be a multiple of linear_num_key_heads \(2\)"),
        ({"num_experts_per_tok": 11}, r"num_experts_per_tok \(11\) exceeds num_experts \(10\)"),
        ({"num_experts": 65_537}, "less than or equal to 65536"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(fields, message):
    with pytest.raises(ValidationError, match=message):
        Qwen3_5Moe(**(SMALL | fields))


def test_its_network_is_not_built_yet():
    assert Qwen3_5Moe(**SMALL).missing() == ["worker of Qwen3_5Moe: not built yet"]
