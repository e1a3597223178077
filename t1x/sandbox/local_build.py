"""Builds the hosts of the local sandboxes from their components."""

from t1x.sandbox.bubblewrap import Bubblewrap
from t1x.sandbox.isolation import CANDIDATE, Fresh, Isolation, Limits
from t1x.sandbox.local import LocalLimits
from t1x.sandbox.local_host import LocalHost
from t1x.sandbox.probe import CHECK, probe, probe_clock, probe_nested, require_programs
from t1x.sandbox.process import Process
from t1x.sandbox.removal import remove_tree
from t1x.sandbox.run_folder import RunFolder
from t1x.sandbox.trial_folder import TrialFolder
from t1x.sandbox.users import Users
from t1x.sandbox.watch import Totals


def build_bubblewrap(spec: LocalLimits, deterministic: bool) -> LocalHost:
    """Raises `ValueError` where the host can't isolate."""
    require_programs()
    users = Users()
    run_folder = RunFolder(spec.root, kill_marked=False)
    try:
        isolation = Bubblewrap(run_folder.path, _limits(spec), deterministic)
        trial = TrialFolder(run_folder.path / "probe", "/app", owner := users.take())
        probe(isolation.fresh(trial, Fresh(("/bin/bash", "-c", CHECK))))
        probe_nested(isolation.fresh(trial, Fresh((CANDIDATE, "/bin/bash", "-c", CHECK))))
        if deterministic:
            probe_clock(isolation.fresh(trial, Fresh(("date", "+%s"))))
        remove_tree(trial.path)
        users.give_back(owner)
    except BaseException:
        run_folder.remove()
        users.close()
        raise
    return _host(spec, run_folder, users, isolation)


def build_process(spec: LocalLimits) -> LocalHost:
    """Raises `ValueError` where the sandboxes' folder can't be made."""
    run_folder = RunFolder(spec.root, kill_marked=True)
    return _host(spec, run_folder, Users(), Process(run_folder.path, _limits(spec)))


def _limits(spec: LocalLimits) -> Limits:
    return Limits(spec.memory, spec.processes, spec.file_size)


def _host(spec: LocalLimits, run_folder: RunFolder, users: Users, isolation: Isolation) -> LocalHost:
    totals = Totals(spec.disk, spec.files, spec.total_memory)
    return LocalHost(run_folder, users, isolation, totals, spec.output_limit)
