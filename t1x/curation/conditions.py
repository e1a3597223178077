"""Under which conditions the tasks of a pool are checked."""

from t1x.config.mapping import to_mapping
from t1x.sandbox.protocol import Sandbox
from t1x.tasks.manifest import Settings

WITHOUT_EFFECT = frozenset(
    {"root", "label", "api_key_variable", "api_url", "target", "quota_per_minute", "delete_backstop"}
    | {"per_node", "create_concurrency", "creates_per_second", "create_burst"}
)
"""Fields of sandboxes that say where they are, how they are paid for and how many are made at a time."""


def check_settings(
    sandbox: Sandbox, repeats: int, agent_deadline: float | None = None, verifier_deadline: float | None = None
) -> Settings:
    """With all fields of the sandbox that may change what a task does in it, also those that t1x doesn't know."""
    name, *fields = to_mapping(sandbox).items()
    return Settings(
        sandbox=name[1],
        sandbox_fields={field: value for field, value in fields if field not in WITHOUT_EFFECT},
        repeats=repeats,
        agent_deadline=agent_deadline,
        verifier_deadline=verifier_deadline,
    )
