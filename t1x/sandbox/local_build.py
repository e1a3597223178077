"""Builds the hosts of the local sandboxes from their components."""

from t1x.sandbox.bubblewrap import Bubblewrap
from t1x.sandbox.host import LocalHost, user_of
from t1x.sandbox.isolation import Fresh, Isolation, Limits
from t1x.sandbox.local import LocalLimits
from t1x.sandbox.probe import CHECK, probe, probe_clock, require_programs
from t1x.sandbox.process import Process
from t1x.sandbox.removal import remove_tree
from t1x.sandbox.run_folder import RunFolder
from t1x.sandbox.trial_folder import TrialFolder


def build_bubblewrap(spec: LocalLimits, deterministic: bool) -> LocalHost:
    """Raises `ValueError` where the host can't isolate."""
    require_programs()
    run_folder = RunFolder(spec.root, kill_marked=False)
    try:
        isolation = Bubblewrap(run_folder.path, _limits(spec), deterministic)
        trial = TrialFolder(run_folder.path / "probe", "/app", user_of(0))
        probe(isolation.fresh(trial, Fresh(("/bin/bash", "-c", CHECK))))
        if deterministic:
            probe_clock(isolation.fresh(trial, Fresh(("date", "+%s"))))
        remove_tree(trial.path)
    except BaseException:
        run_folder.remove()
        raise
    return _host(spec, run_folder, isolation)


def build_process(spec: LocalLimits) -> LocalHost:
    """Raises `ValueError` where the sandboxes' folder can't be made."""
    run_folder = RunFolder(spec.root, kill_marked=True)
    return _host(spec, run_folder, Process(run_folder.path, _limits(spec)))


def _limits(spec: LocalLimits) -> Limits:
    return Limits(spec.memory, spec.processes, spec.file_size)


def _host(spec: LocalLimits, run_folder: RunFolder, isolation: Isolation) -> LocalHost:
    return LocalHost(run_folder, isolation, spec.output_limit, spec.create_concurrency)
