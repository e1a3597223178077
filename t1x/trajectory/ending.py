"""How a trial can end."""

from enum import StrEnum
from typing import Never


class EndedBy(StrEnum):
    """Why a trial ended; decides what follows. Raises `ValueError` for a word that is none of these."""

    DONE = "done"
    TURN_LIMIT = "turn_limit"
    CONTEXT = "context"
    AGENT_DEADLINE = "agent_deadline"
    SANDBOX_ERROR = "sandbox_error"
    ENGINE_ERROR = "engine_error"
    VERIFIER_ERROR = "verifier_error"
    REMOTE_DEADLINE = "remote_deadline"
    CANCELLED = "cancelled"

    @classmethod
    def _missing_(cls, value: object) -> Never:
        raise ValueError(f"it ended by {value!r}, but trials end by {', '.join(cls)}; a newer t1x may have written it")

    @property
    def counts(self) -> bool:
        """Whether the verifier runs and the reward counts. The others are invalid or cancelled, never reward 0."""
        return self in (EndedBy.DONE, EndedBy.TURN_LIMIT, EndedBy.CONTEXT, EndedBy.AGENT_DEADLINE)

    @property
    def invalid(self) -> bool:
        """Whether something broke that says nothing about the agent."""
        return not self.counts and self is not EndedBy.CANCELLED
