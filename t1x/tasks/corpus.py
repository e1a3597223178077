"""The text of synthetic tasks (instructions, reference commands, what they print), which the bundled tokenizer was trained on.

python -m t1x.tasks.corpus 1000 > corpus.jsonl
python -m t1x.text.train_tokenizer corpus.jsonl tokenizer.json
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from t1x.tasks.synthetic import SyntheticPool
from t1x.tasks.task import Task, TaskFile


def write_files(files: tuple[TaskFile, ...], folder: Path) -> None:
    """Puts a task's files into a folder, parent folders and modes included."""
    for file in files:
        target = folder / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.content)
        target.chmod(file.mode)


def task_texts(task: Task) -> Iterator[str]:
    """The instruction, then each reference command and what it prints in a plain bash (only for tasks that are trusted)."""
    yield task.instruction
    with tempfile.TemporaryDirectory() as folder:
        write_files(task.environment, Path(folder))
        for sub_goal in task.solution:
            for command in sub_goal.commands:
                yield command
                shell = ["bash", "--norc", "--noprofile", "-c", command]
                ran = subprocess.run(
                    shell, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True, timeout=60
                )
                if ran.stdout:
                    yield ran.stdout.strip()
        yield "done"


if __name__ == "__main__":
    pool = SyntheticPool(split="demo", size=int(sys.argv[1])).build()
    for index in range(len(pool)):
        for text in task_texts(pool[index]):
            print(json.dumps(text))
