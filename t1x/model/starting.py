"""Networks that start from weights on disk."""

from pathlib import Path

from t1x.model.checkpoint import ARCHITECTURES, load_hf, load_pretrained, read_config, require_same, to_hf
from t1x.model.qwen3_moe import Model
from t1x.model.transformer import MoeTransformer
from t1x.model.value import ValueModel


def stored_policy(folder: Path, model: Model) -> MoeTransformer:
    """The policy in a folder. Raises `ValueError` unless it's one of this model's architecture."""
    policy = load_pretrained(folder)
    require_same(policy.config, model, folder)
    return policy


def stored_critic(folder: Path, model: Model) -> ValueModel:
    """The value model in a folder, or a policy's decoder under a head of zeros. Raises `ValueError` unless it's one of this model's
    architecture."""
    if ARCHITECTURES[MoeTransformer] in (read_config(folder).get("architectures") or ()):
        policy = stored_policy(folder, model)
        critic = ValueModel(policy.config)
        critic.start_from(policy)
    else:
        critic = load_pretrained(folder, ValueModel)
        require_same(critic.config, model, folder)
    return critic


def start_policy(policy: MoeTransformer, folder: Path) -> None:
    """Copies a stored policy's weights. Raises what `stored_policy` does."""
    load_hf(policy, to_hf(stored_policy(folder, policy.config)))


def start_critic(critic: ValueModel, folder: Path) -> None:
    """Copies a stored critic's weights. Raises what `stored_critic` does."""
    load_hf(critic, to_hf(stored_critic(folder, critic.config)))
