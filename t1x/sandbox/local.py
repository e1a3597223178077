"""Sandboxes on this machine, as components."""

import warnings
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, PositiveInt

from t1x.config import Role
from t1x.config.requirements import program
from t1x.sandbox.protocol import Sandbox, SandboxHost


class LocalLimits(BaseModel):
    """What both local sandboxes take."""

    memory: Annotated[int, Role.PLACEMENT, Field(ge=64)] = 2048
    """Address space of one process, MiB (RLIMIT_AS). With less than 64 hardly a program starts."""
    total_memory: Annotated[PositiveInt, Role.PLACEMENT] = 4096
    """Memory of all processes of one sandbox together, MiB. This and `disk` and `files` are watched, not walled in: what goes over
    is found within a second as a rule, later beside many busy sandboxes, and then every process of the sandbox is killed; the
    command's result says why, and the agent goes on with a new shell."""
    processes: Annotated[int, Role.PLACEMENT, Field(ge=16)] = 256
    """Processes and threads of one sandbox at a time (RLIMIT_NPROC), of which a verifier that confines a program takes four before
    that one has started anything. Linux before 5.14 counts them by user, over all of its
    sandboxes; started by root, each sandbox has a user of its own. `ProcessSandbox` has the limit only when started by root."""
    file_size: Annotated[PositiveInt, Role.PLACEMENT] = 256
    """Largest file that a process may write, MiB (RLIMIT_FSIZE)."""
    disk: Annotated[PositiveInt, Role.PLACEMENT] = 1024
    """All files of one sandbox together, MiB on disk: work folder, /tmp, home, and what has no name but a process holds it open.
    Watched as `total_memory` is. Not started by root, t1x can't look into folders that the agent locks, and what is in them isn't
    counted; nor is what `ProcessSandbox` lets commands write elsewhere."""
    files: Annotated[PositiveInt, Role.PLACEMENT] = 100_000
    """Files and folders of one sandbox; watched as `total_memory` is."""
    output_limit: PositiveInt = 10_000
    """Bytes of one command's output that are kept, half from its beginning, half from its end (Terminus-2's 10,000)."""
    create_concurrency: Annotated[PositiveInt, Role.PLACEMENT] = 8
    """Sandboxes being created at a time; the others wait."""
    root: Annotated[Path | None, Role.PLACEMENT] = None
    """Folder in which the folder of all sandboxes is made; it's made itself where it isn't there. The system's temp folder where
    None."""

    def missing(self) -> list[str]:
        from t1x.sandbox.run_folder import unusable

        reason = unusable(self.root) if self.root is not None else None
        return [f"folder {self.root} for sandboxes ({reason}; set {type(self).__name__}.root to another)"] if reason else []


class BubblewrapSandbox(LocalLimits, Sandbox):
    """Each trial in Linux namespaces of its own, without network, over a read-only system; needs the program bubblewrap."""

    def missing(self) -> list[str]:
        install = "apt-get install bubblewrap, or choose `@ProcessSandbox()`, which isolates nothing"
        return [*program("bwrap", install), *super().missing()]

    def indeterminism(self) -> str:
        return ""

    def missing_deterministic(self) -> list[str]:
        from t1x.sandbox.fixed_clock import COMPILER, INSTALL

        return program(COMPILER, INSTALL)

    def build_host(self, deterministic: bool) -> SandboxHost:
        from t1x.sandbox.local_build import build_bubblewrap

        return build_bubblewrap(self, deterministic)


class ProcessSandbox(LocalLimits, Sandbox):
    """Each trial as ordinary processes in a folder of its own, for hosts without namespaces. It isolates nothing."""

    def indeterminism(self) -> str:
        return "commands see this machine's clock, files and processes; use @BubblewrapSandbox()"

    def build_host(self, deterministic: bool) -> SandboxHost:
        from t1x.sandbox.local_build import build_process

        if deterministic:
            raise ValueError(f"ProcessSandbox can't be deterministic: {self.indeterminism()}")
        warnings.warn(
            "ProcessSandbox isolates nothing: commands see this machine's files and its network, and can tamper with the verifier",
            stacklevel=3,
        )
        return build_process(self)
