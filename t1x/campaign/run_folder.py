"""The folder of a run."""

from pathlib import Path


def new_folder(runs: Path, name: str) -> Path:
    """A new folder `name` in the runs folder, with a number behind it where that run was made before. Raises `ValueError` where it
    can't be written."""
    try:
        runs.mkdir(parents=True, exist_ok=True)
        number = 1
        while True:
            folder = runs / (name if number == 1 else f"{name}.{number}")
            try:
                folder.mkdir()
            except FileExistsError:
                number += 1
            else:
                return folder
    except OSError as error:
        message = f"runs can't be kept in {runs}: {error.strerror}; set Experiment.runs to a folder you may write"
        raise ValueError(message) from error
