"""A reference solution as `solution/solve.sh`: runnable by bash, with a comment line for what a plain script can't say.

    #!/bin/bash
    # sub-goal: rename
    # careless: cp fern.txt grape.txt
    mv fern.txt grape.txt

A script without such comments is one sub-goal of one command, the script as it stands.
"""

from collections.abc import Sequence

from t1x.tasks.task import SubGoal

SUB_GOAL = "# sub-goal: "
CARELESS = "# careless: "
WHOLE_SCRIPT = "solution"
"""Family of a script without comment lines."""


def write_script(solution: Sequence[SubGoal]) -> str:
    """Raises `ValueError` for a command that a line can't hold."""
    if len(solution) == 1 and solution[0].family == WHOLE_SCRIPT and len(solution[0].commands) == 1:
        return solution[0].commands[0]
    lines = ["#!/bin/bash"]
    for sub_goal in solution:
        lines.append(SUB_GOAL + sub_goal.family)
        lines += [CARELESS + command for command in sub_goal.careless]
        lines += sub_goal.commands
        for command in (sub_goal.family, *sub_goal.careless, *sub_goal.commands):
            if not command.strip() or len(command.splitlines()) != 1 or command.startswith((SUB_GOAL, CARELESS)):
                raise ValueError(
                    f"{command!r} doesn't fit on one line of solve.sh; write every command of the solution on one line"
                )
    return "\n".join(lines) + "\n"


def read_script(script: str) -> tuple[SubGoal, ...]:
    """The inverse of `write_script`."""
    families: list[str] = []
    commands: list[list[str]] = []
    careless: list[list[str]] = []
    for line in script.split("\n"):
        if line.startswith(SUB_GOAL):
            families.append(line.removeprefix(SUB_GOAL))
            commands.append([])
            careless.append([])
        elif families and line.startswith(CARELESS):
            careless[-1].append(line.removeprefix(CARELESS))
        elif families and line.strip():
            commands[-1].append(line)
    if not families:
        return (SubGoal(WHOLE_SCRIPT, (script,)),)
    return tuple(SubGoal(f, tuple(c), tuple(w)) for f, c, w in zip(families, commands, careless, strict=True))
