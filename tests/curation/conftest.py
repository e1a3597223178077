"""Pools of tasks on disk, and checks of them in real sandboxes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from t1x.curation.candidates import candidates
from t1x.curation.check import Check
from t1x.sandbox.local import BubblewrapSandbox
from t1x.tasks.manifest import Manifest, Settings
from t1x.tasks.pool import Pool

collect_ignore = ["broken"]

Checked = Callable[..., Manifest]


@pytest.fixture
def checked(sandboxes: Path, tmp_path: Path) -> Checked:
    """Checks a pool; `ran` is extended by the names of the tasks that were run."""

    def check(pool: Pool, repeats: int = 2, fresh: bool = False, ran: list[str] | None = None) -> Manifest:
        settings = Settings(sandbox="BubblewrapSandbox", repeats=repeats)
        with Check(candidates(pool), tmp_path / "manifest.json", settings, fresh) as run:
            run.run(BubblewrapSandbox(root=sandboxes), 2, lambda name, entry: None if ran is None else ran.append(name))
            return run.finish()

    return check
