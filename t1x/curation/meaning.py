"""What each fault of a task means to somebody who trains on it."""

from collections.abc import Mapping
from dataclasses import dataclass

from t1x.tasks.manifest import FAULTS, Fault, Manifest

MEANING: Mapping[Fault, str] = {
    "unreadable": "the task's folder can't be read",
    "environment_fails": "a sandbox with the task's environment can't be made",
    "verifier_unusable": "the verifier's record can't be used, so every such trial is invalid",
    "in_process": "the verifier's record may be the work of the code that it judges",
    "asserts_nothing": "tests that can't fail",
    "passes_untouched": "an agent that does nothing is paid in full",
    "no_solution": "nothing shows that the task can be solved",
    "solution_fails": "the reference solution doesn't pass",
    "flaky": "the same solution passes one time and not the next",
    "near_deadline": "the verifier takes more than half of its time",
    "duplicate": "the same instruction, environment and tests as another task",
    "sandbox_fails": "a sandbox failed while the task ran; the next check tries it again",
}


@dataclass(frozen=True, slots=True)
class Group:
    """The tasks of a pool that have one fault."""

    fault: Fault
    tasks: tuple[tuple[str, str], ...]
    """(name, what was found) of each, in the pool's order."""


def grouped(manifest: Manifest) -> list[Group]:
    """Every fault that was found, in the order in which they are declared."""
    found = [(each.fault, name, each.detail) for name, entry in manifest.tasks.items() for each in entry.findings]
    groups = [Group(fault, tuple((name, detail) for other, name, detail in found if other == fault)) for fault in FAULTS]
    return [group for group in groups if group.tasks]
