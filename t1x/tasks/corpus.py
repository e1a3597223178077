"""The text of synthetic tasks (instructions, reference commands, what they print), which the bundled tokenizer was trained on:

    python -m t1x.tasks.corpus 1000 > corpus.jsonl
    python -m t1x.text.train_tokenizer corpus.jsonl tokenizer.json

Each line is a JSON string.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from t1x.tasks.disk import write_files
from t1x.tasks.synthetic import SyntheticPool
from t1x.tasks.task import Task, TaskFile


def task_texts(task: Task) -> Iterator[str]:
    """The instruction, then each reference command and what it prints in a plain bash (only for tasks that are trusted). Raises
    `ValueError` for a task whose environment takes commands: those need a sandbox."""
    files = [step for step in task.environment if isinstance(step, TaskFile)]
    if len(files) < len(task.environment):
        raise ValueError(f"task {task.name}: its environment is made by commands; make texts of tasks that start from files")
    yield task.instruction
    with tempfile.TemporaryDirectory() as folder:
        write_files(files, Path(folder))
        for sub_goal in task.solution:
            for command in sub_goal.commands:
                yield command
                printed = subprocess.check_output(["bash", "-c", command], cwd=folder, text=True, timeout=60).strip()
                if printed:
                    yield printed
        yield "done"


if __name__ == "__main__":
    pool = SyntheticPool(split="demo", size=int(sys.argv[1])).build()
    for index in range(len(pool)):
        for text in task_texts(pool[index]):
            print(json.dumps(text))
