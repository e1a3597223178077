"""A checkpoint keeps the networks that the campaign names."""

from pathlib import Path

import pytest
from stores import with_store
from tiny import open_folder, settings

import t1x
from t1x.config import load

NOTHING = ("Campaign.start = @ScratchStart()", "Campaign.steps = 0", "Campaign.suites = []")


@pytest.mark.parametrize("kept", [(), ("critic",), ("policy",), ("policy", "critic")])
def test_a_checkpoint_keeps_what_is_named(kept: tuple[str, ...], tmp_path: Path) -> None:
    with open_folder() as sandboxes:
        changes = settings(with_store(tmp_path), sandboxes, *NOTHING, f"Campaign.kept = {kept}")
        run = t1x.run(load("experiments/quickstart.gin", set=changes))
    assert {path.name for path in run.folder.glob("checkpoints/start/*")} == set(kept)
    assert run.checkpoint == ("checkpoints/start" if kept else None)
