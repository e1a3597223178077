"""Which run a user means."""

from pathlib import Path

from t1x.campaign.record import RECORD, Run, read_run, runs
from t1x.campaign.smoke import FOLDER
from t1x.config.names import closest
from t1x.config.places import shown


def find_run(wanted: str, folder: Path) -> Run:
    """The run that `wanted` stands for: its folder, its name in the runs folder, its id in the tracking store, or the beginning of
    one of these that no other run shares. Raises `ValueError` where there is none or several."""
    if (Path(wanted) / RECORD).is_file():
        return read_run(Path(wanted).resolve())
    known = runs(folder)
    names = {run.folder.name: run for run in known} | {run.tracking_id: run for run in known if run.tracking_id}
    if wanted in names:
        return names[wanted]
    found = {run.folder.name: run for name, run in names.items() if wanted and name.startswith(wanted)}
    if len(found) == 1:
        return next(iter(found.values()))
    if found:
        raise ValueError(f"{wanted!r} may be {' or '.join(sorted(found))}; write more of the name")
    if (whole := run_around(Path(wanted))) and ("/" in wanted or Path(wanted).exists()):
        raise ValueError(f"{wanted} isn't a run, but lies in one; name that: {shown(whole)}")
    if smoke := [str(run.folder) for run in runs(folder / FOLDER) if wanted and run.folder.name.startswith(wanted)]:
        raise ValueError(f"there is no run {wanted!r} in {folder}, but a smoke test; name its folder: {' or '.join(smoke)}")
    hint = closest(wanted, (run.folder.name for run in known))
    raise ValueError(f"there is no run {wanted!r} in {folder}{hint}; `t1x runs --runs {folder}` lists what there is")


def run_around(path: Path) -> Path | None:
    """The folder of the run that a path lies in, whether or not there is something at it; None where it lies in none."""
    return next((above for above in path.absolute().parents if (above / RECORD).is_file()), None)
