"""Weights under Hugging Face names, in memory and on disk.

Invariant: what `to_hf` names, `load_hf` reads back to the same bits, and transformers' Qwen3-MoE reads and writes the same files.
"""

import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import torch
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from t1x.model.durable import sync, sync_below
from t1x.model.qwen3_moe import Model, Qwen3Moe
from t1x.model.transformer import MoeTransformer
from t1x.model.value import ValueModel
from t1x.parallel.sharded import assign, own, whole

Network = TypeVar("Network", MoeTransformer, ValueModel)

ARCHITECTURES = {MoeTransformer: "Qwen3MoeForCausalLM", ValueModel: "Qwen3MoeForTokenClassification"}
"""Hugging Face's name of each network; a value model is a token classifier with one label."""


def to_hf(model: MoeTransformer | ValueModel) -> dict[str, Tensor]:
    """The weights by Hugging Face name, detached; many are views of the model's own tensors, so that writing to the model changes
    them."""
    weights: dict[str, Tensor] = {}
    for name, tensor in _stored(model).items():
        weights.update(_split(model.config, name, tensor))
    return weights


@torch.no_grad()
def load_hf(model: MoeTransformer | ValueModel, weights: Mapping[str, Tensor]) -> None:
    """Copies weights by Hugging Face name into the model (converted to its dtype). A tied head may be named or left out. Raises
    `ValueError` for a name that is missing or too many and for a wrong shape; the model is then as it was."""
    stored = _stored(model)
    parts = [named for ours, tensor in stored.items() for named in _split(model.config, ours, tensor).items()]
    expected = {name for name, _ in parts}
    given = set(weights) - ({"lm_head.weight"} if model.config.tie_word_embeddings else set())
    if given != expected:
        missing, unknown = sorted(expected - given)[:3], sorted(given - expected)[:3]
        raise ValueError(f"weights don't fit the model: missing {missing or 'none'}, unknown {unknown or 'none'} (first 3 of each)")
    for name, part in parts:
        if part.shape != weights[name].shape:
            raise ValueError(f"weight {name} has shape {tuple(weights[name].shape)}, the model needs {tuple(part.shape)}")
    for name, part in parts:
        part.copy_(weights[name])
    for name, parameter in model.named_parameters():
        if own(parameter) is not parameter:
            assign(parameter, stored[name])


def save_pretrained(model: MoeTransformer | ValueModel, folder: str | Path) -> None:
    """Writes `config.json` and `model.safetensors` into a new folder, all or nothing. Raises `ValueError` if the folder exists."""
    folder = Path(folder)
    if folder.exists():
        raise ValueError(f"{folder} exists already; a checkpoint is written once, into a folder of its own")
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        draft.chmod(0o755)
        write_network(draft, hf_config(model), to_hf(model))
        sync_below(draft)
        draft.rename(folder)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    sync(folder.parent)


def write_network(folder: Path, config: Mapping[str, Any], weights: Mapping[str, Tensor]) -> None:
    """Writes `config.json` and `model.safetensors` into a folder that is there. `weights` has Hugging Face's names."""
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    save_file({name: tensor.contiguous() for name, tensor in weights.items()}, folder / "model.safetensors", {"format": "pt"})


def load_pretrained(folder: str | Path, network: type[Network] = MoeTransformer) -> Network:  # type: ignore[assignment]
    """Reads a network from a folder that `save_pretrained` or transformers wrote (one or several safetensors files), in float32.
    Raises `ValueError` where the folder doesn't hold that kind of network."""
    folder = Path(folder)
    config = read_config(folder)
    weights = read_weights(folder)
    if ARCHITECTURES[network] not in (config.get("architectures") or ()):
        raise ValueError(f"{folder} holds {config.get('architectures')}, expected {ARCHITECTURES[network]}")
    try:
        model = network(from_hf_config(config))
        load_hf(model, weights)
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
        raise ValueError(f"{folder / 'config.json'}: {wrong}") from error
    except ValueError as error:
        raise ValueError(f"{folder} holds no readable model: {error}") from error
    return model


def read_weights(folder: Path) -> dict[str, Tensor]:
    """A folder's weights by Hugging Face name, as they are stored (one or several safetensors files). Raises `ValueError` where
    there are none that can be read."""
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise ValueError(f"{folder} holds no .safetensors file")
    try:
        return {name: tensor for file in files for name, tensor in load_file(file).items()}
    except (OSError, SafetensorError) as error:
        raise ValueError(f"{folder} holds no readable model: {error}") from error


def read_config(folder: Path) -> dict[str, Any]:
    """A folder's `config.json`. Raises `ValueError` where there is none that can be read."""
    if not folder.is_dir():
        raise ValueError(f"{folder} holds no readable model: there is no such folder")
    if not (folder / "config.json").is_file():
        raise ValueError(f"{folder} holds no readable model: it has no config.json (Hugging Face layout)")
    try:
        config = json.loads((folder / "config.json").read_text())
        if not isinstance(config, dict):
            raise ValueError("config.json isn't an object")
    except (OSError, ValueError) as error:
        raise ValueError(f"{folder} holds no readable model: {error}") from error
    return config


def require_same(stored: Qwen3Moe, wanted: Model, folder: str | Path) -> None:
    """Raises `ValueError` where a model that was read from `folder` isn't of the wanted architecture."""
    if other := stored.differences(wanted):
        raise ValueError(f"{folder} holds another model: {', '.join(other)}")


def hf_config(model: MoeTransformer | ValueModel) -> dict[str, Any]:
    """The content of `config.json`."""
    fields = model.config.model_dump(exclude={*model.config.initial, "rope_theta"})
    return {
        "architectures": [ARCHITECTURES[type(model)]],
        "model_type": "qwen3_moe",
        **fields,
        "rope_theta": model.config.rope_theta,
        "rope_parameters": {"rope_theta": model.config.rope_theta, "rope_type": "default"},
        "hidden_act": "silu",
        "attention_bias": False,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "dtype": "float32",
        **({"num_labels": 1} if isinstance(model, ValueModel) else {}),
    }


def from_hf_config(config: Mapping[str, Any]) -> Qwen3Moe:
    """The component that a `config.json` describes. Raises `ValueError` for a model that ours can't be."""
    if config.get("model_type") != "qwen3_moe":
        raise ValueError(f"model_type {config.get('model_type')!r} isn't supported, expected 'qwen3_moe'")
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if not isinstance(rope, Mapping):
        raise ValueError(f"rope_parameters = {rope!r} isn't an object")
    plain = {
        "rope_type": (rope.get("rope_type", "default"), "default"),
        "decoder_sparse_step": (config.get("decoder_sparse_step", 1), 1),
        "mlp_only_layers": (config.get("mlp_only_layers") or [], []),
        "attention_bias": (config.get("attention_bias", False), False),
        "use_sliding_window": (config.get("use_sliding_window", False), False),
        "hidden_act": (config.get("hidden_act", "silu"), "silu"),
    }
    for field, (value, supported) in plain.items():
        if value != supported:
            raise ValueError(f"{field} = {value!r} isn't supported, only {supported!r}")
    known = {name: config[name] for name in Qwen3Moe.model_fields if name in config}
    known.setdefault("num_experts", config.get("num_local_experts"))
    known["rope_theta"] = rope.get("rope_theta", config.get("rope_theta", Qwen3Moe.model_fields["rope_theta"].default))
    return Qwen3Moe(**known)


def _stored(model: MoeTransformer | ValueModel) -> dict[str, Tensor]:
    return {name: whole(parameter.detach()) for name, parameter in model.named_parameters()}


HF_LAYER_NAMES = {
    "input_norm.weight": "input_layernorm.weight",
    "attention.output.weight": "self_attn.o_proj.weight",
    "post_attention_norm.weight": "post_attention_layernorm.weight",
    "moe.router.wrapped.weight": "mlp.gate.weight",
}


def _split(config: Qwen3Moe, name: str, tensor: Tensor) -> dict[str, Tensor]:
    """One of our parameters as Hugging Face's, each a view of it."""
    if not name.startswith("model.layers."):
        return {name: tensor}
    _, _, layer, own = name.split(".", 3)
    prefix = f"model.layers.{layer}."
    if own in HF_LAYER_NAMES:
        return {prefix + HF_LAYER_NAMES[own]: tensor}
    if own == "attention.qkv.weight":
        heads = [config.num_attention_heads, config.num_key_value_heads, config.num_key_value_heads]
        parts = tensor.split([config.head_dim * n for n in heads])
        return {f"{prefix}self_attn.{part}_proj.weight": view for part, view in zip("qkv", parts, strict=True)}
    if own == "attention.qk_norm":
        return {f"{prefix}self_attn.{part}_norm.weight": gain for part, gain in zip("qk", tensor, strict=True)}
    experts = f"{prefix}mlp.experts."
    if own == "moe.gate_up":
        halves = [expert.chunk(2) for expert in tensor]
        return {
            f"{experts}{i}.{part}_proj.weight": pair[j] for i, pair in enumerate(halves) for j, part in enumerate(("gate", "up"))
        }
    assert own == "moe.down", name
    return {f"{experts}{i}.down_proj.weight": expert.t() for i, expert in enumerate(tensor)}
