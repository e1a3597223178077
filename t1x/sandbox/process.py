"""No isolation: ordinary processes in the trial's folder.

Commands start in the work folder and have to name files relative to it: nothing can be mounted at /app. The verifier's files are
copied and the absolute paths they name (work folder, mounted folders) rewritten, as are those in the commands and variables of a
task's environment. Processes are found by their user, which is the trial's alone (`Users`), where we are root, else by `T1X_ROOT`
in their environment, which a hostile one can remove.
"""

import os
import re
import shlex
import shutil
import signal
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from t1x.sandbox.child import Child
from t1x.sandbox.isolation import BASH, FRESH_ENV, SHELL_ENV, Fresh, Launch, Limits, announced, as_user, exports
from t1x.sandbox.processes import Running, Snapshot
from t1x.sandbox.system import SystemFiles
from t1x.sandbox.trial_folder import HOME, TMP, TrialFolder

MARK = "T1X_ROOT"
_KILL_ROUNDS = 100


class Process:
    """Starts shells and processes as they are; see `Isolation`."""

    def __init__(self, run_folder: Path, limits: Limits) -> None:
        self._limits = limits
        self._system = SystemFiles(run_folder / "system")

    def shell(self, trial: TrialFolder) -> Launch:
        return self._at_home(trial, BASH)

    def build(self, trial: TrialFolder, argv: Sequence[str], variables: Mapping[str, str]) -> Launch:
        words = [_rewritten(word, trial.mounts) for word in argv]
        return self._at_home(trial, announced(self.exports(trial, variables) + self.prologue(trial), words))

    def exports(self, trial: TrialFolder, variables: Mapping[str, str]) -> str:
        return exports({name: _rewritten(value, trial.mounts) for name, value in variables.items() if name != MARK})

    def _at_home(self, trial: TrialFolder, argv: Sequence[str]) -> Launch:
        return self._launch(trial, argv, {**SHELL_ENV, "HOME": str(trial.mounts[HOME]), "TMPDIR": str(trial.mounts[TMP])})

    def prologue(self, trial: TrialFolder) -> str:
        limits = self._limits.as_shell(processes=trial.owner is not None)
        return f"{limits}; umask 022; cd {shlex.quote(str(trial.work))}"

    def fetch(self, system: Iterable[Path]) -> None:
        self._system.fetch(system)

    def fresh(self, trial: TrialFolder, fresh: Fresh) -> Launch:
        paths = {trial.workdir: trial.work} | {inside: folder for folder, inside in fresh.writable.items()}
        copies = {folder: trial.private_folder() / "copy" for folder in fresh.read_only}
        paths |= {inside: copies[folder] for folder, inside in fresh.read_only.items()}
        paths |= {inside: self._system.place(source) for source, inside in fresh.system.items()}
        for folder, copy in copies.items():
            shutil.copytree(folder, copy)
            for path in (copy, *copy.rglob("*")):
                path.chmod(0o755)
                if path.is_file():
                    path.write_bytes(_rewrite(path.read_bytes(), paths))
        words = [_rewritten(word, paths) for word in fresh.argv]
        env = {**FRESH_ENV, "TMPDIR": str(trial.private_folder()), **fresh.variables}
        return self._launch(trial, announced(self.prologue(trial), words), env)

    def confined(self) -> tuple[str, ...]:
        return ()

    def shell_pid(self, child: Child) -> int | None:
        return child.pid if child.poll() is None else None

    def kill(self, trial: TrialFolder, child: Child) -> None:
        child.kill_group()
        for _ in range(_KILL_ROUNDS):
            found = self.processes(Snapshot(), trial, child)
            for process in found:
                with suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)
            if not found:
                return

    def processes(self, snapshot: Snapshot, trial: TrialFolder, child: Child) -> list[Running]:
        if trial.owner is not None:
            return snapshot.of_user(trial.owner)
        return snapshot.with_variable(MARK, str(trial.path))

    def _launch(self, trial: TrialFolder, argv: Sequence[str], env: dict[str, str]) -> Launch:
        return Launch((*as_user(trial.owner), *argv), {**env, MARK: str(trial.path)})


def _rewritten(text: str, paths: Mapping[str, Path]) -> str:
    return os.fsdecode(_rewrite(os.fsencode(text), paths))


def _rewrite(content: bytes, paths: Mapping[str, Path]) -> bytes:
    """Text with every absolute path inside replaced by the host's."""
    names = b"|".join(re.escape(os.fsencode(inside)) for inside in sorted(paths, key=len, reverse=True))
    return re.sub(rb"(?<![\w./-])(" + names + rb")(?![\w.-])", lambda found: os.fsencode(paths[os.fsdecode(found[1])]), content)
