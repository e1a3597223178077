"""The critic: the policy's decoder with a scalar head."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torch import Tensor, nn

from t1x.model.transformer import Decoder, MoeTransformer

if TYPE_CHECKING:
    from t1x.model.qwen3_moe import Qwen3Moe


class ValueModel(nn.Module):
    """V read at a position's hidden state: it has seen the tokens up to that position. Routes freely, never from a record."""

    def __init__(self, config: "Qwen3Moe") -> None:
        super().__init__()
        self.config = config
        self.model = Decoder(config)
        self.score = nn.Linear(config.hidden_size, 1)
        nn.init.zeros_(self.score.weight)
        nn.init.zeros_(self.score.bias)

    def start_from(self, policy: MoeTransformer) -> None:
        """Takes over a policy's decoder weights; the head stays."""
        self.model.load_state_dict(policy.model.state_dict())

    def forward(self, token_ids: Tensor, *, lengths: Sequence[int] | None = None, keep: Tensor | None = None) -> Tensor:
        """Values float32 of token_ids' shape, or [M] at the kept positions only; the arguments are `Decoder.forward`'s."""
        values: Tensor = self.score(self.model(token_ids, lengths=lengths, keep=keep).hidden)
        return values.squeeze(-1).float().clone()  # sharding's hooks don't stand views
