"""Checking a pool by running it: each task untouched, and its reference solution several times.

Invariants:
- no sandbox is left, however the check ends;
- what has been found is kept as it comes, and isn't looked for again as long as the task stays as it is.
"""

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path

from t1x.curation.attempt import EnvironmentFault, attempt
from t1x.curation.candidates import Candidate, duplicates
from t1x.curation.findings import judge, plain
from t1x.curation.journal import Journal, journal_of
from t1x.sandbox.protocol import Sandbox, SandboxError, SandboxHost
from t1x.tasks.manifest import Entry, Fault, Finding, Manifest, Settings, read_manifest, write_manifest
from t1x.tasks.task import Task

Found = Callable[[str, Entry], None]
"""Takes the name of a task and its entry."""
AGAIN: Fault = "sandbox_fails"
"""No fault of the task's, so the next check tries it again."""


class Check:
    """One check of the tasks of a pool; a context manager."""

    def __init__(self, tasks: list[Candidate], out: Path, settings: Settings, fresh: bool = False) -> None:
        """`out` is the manifest's file. What it and the journal beside it say about a task that is still the same holds,
        unless this begins `fresh` or the settings are others. Raises `ValueError`."""
        self.tasks = tasks
        self._out, self._settings = out, settings
        before = None if fresh else _manifest(out)
        self._journal = Journal(journal_of(out), settings, fresh)
        known = dict(before.tasks) if before is not None and before.settings == settings else {}
        known |= self._journal.entries
        digests = {each.name: each.digest for each in tasks if each.task is not None}
        self.known = {name: entry for name, entry in known.items() if entry.sha256 == digests.get(name) and _lasts(entry)}
        """What is known about tasks that don't have to be run (again), by their names."""

    def __enter__(self) -> "Check":
        return self

    def __exit__(self, *error: object) -> None:
        self._journal.close()

    @property
    def due(self) -> list[Candidate]:
        """The tasks that have to be run."""
        return [each for each in self.tasks if each.task is not None and each.name not in self.known]

    def run(self, sandbox: Sandbox, jobs: int, on_entry: Found) -> None:
        """Runs what is due, `jobs` tasks at a time. Raises `ValueError` where the host can't have such sandboxes."""

        def keep(name: str, entry: Entry) -> None:
            self.known[name] = entry
            if _lasts(entry):
                self._journal.add(name, entry)
            on_entry(name, entry)

        if self.due:
            asyncio.run(_run(self.due, sandbox, self._settings.repeats, jobs, keep))

    def finish(self) -> Manifest:
        """Writes the manifest, which makes the journal useless. Raises `OSError`."""
        twins = duplicates(self.tasks)
        entries = {
            each.name: _with_twin(self.known.get(each.name) or _unreadable(each), twins.get(each.name)) for each in self.tasks
        }
        manifest = Manifest(settings=self._settings, tasks=entries)
        write_manifest(self._out, manifest)
        self._journal.remove()
        return manifest


async def _run(due: list[Candidate], sandbox: Sandbox, repeats: int, jobs: int, keep: Found) -> None:
    host = sandbox.build()
    rest = iter(due)

    async def work() -> None:
        for each in rest:
            assert each.task is not None
            keep(each.name, await examine(each.task, each.digest, host, repeats))

    workers = [asyncio.create_task(work()) for _ in range(min(jobs, len(due)))]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        await host.close()


async def examine(task: Task, digest: str, host: SandboxHost, repeats: int) -> Entry:
    """Runs one task: untouched, and its solution `repeats` times, or once where a deadline makes every run dear."""
    try:
        untouched = await attempt(task, (), host)
        commands = [command for part in task.solution for command in part.commands]
        solved = []
        for _ in range(repeats if commands else 0):
            solved.append(await attempt(task, commands, host))
            if solved[-1].overran or "timeout" in (untouched.report.cause, solved[-1].report.cause):
                break
    except EnvironmentFault as fault:
        return _failed(digest, "environment_fails", _of(task, fault))
    except SandboxError as fault:
        return _failed(digest, AGAIN, _of(task, fault))
    return judge(task, digest, untouched, solved)


def _of(task: Task, fault: Exception) -> str:
    """The message without the task's name in front, which the entry has."""
    return str(fault).removeprefix(f"task {task.name}: ")


def _failed(digest: str, fault: Fault, detail: str) -> Entry:
    return Entry(sha256=digest, findings=(Finding(fault=fault, detail=plain(detail)),))


def _unreadable(task: Candidate) -> Entry:
    return _failed(task.digest, "unreadable", task.error)


def _lasts(entry: Entry) -> bool:
    """Whether it is known until the task changes."""
    return all(found.fault != AGAIN for found in entry.findings)


def _with_twin(entry: Entry, twin: str | None) -> Entry:
    found: Iterable[Finding] = [each for each in entry.findings if each.fault != "duplicate"]
    if twin is not None:
        found = [*found, Finding(fault="duplicate", detail=f"the same instruction, environment and tests as {twin}")]
    return entry.model_copy(update={"findings": tuple(found)})


def _manifest(path: Path) -> Manifest | None:
    try:
        return read_manifest(path)
    except OSError as error:
        raise ValueError(f"{path}: can't be read ({error.strerror}); name another with --out") from error
