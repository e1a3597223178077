"""Tasks of a pool one by one."""

import shutil
from pathlib import Path

from t1x.curation.candidates import candidates, duplicates, pool_folder
from t1x.tasks.folder import FolderPool
from t1x.tasks.named import NamedPool
from t1x.tasks.synthetic import SyntheticPool

FINE = Path(__file__).parent / "broken" / "fine"


def named(pool, size: int) -> NamedPool:
    return NamedPool(name="x", per_assertion=True, size=size, tasks=pool)


def test_a_malformed_task_does_not_hide_the_others(tmp_path):
    for name in ("a", "b", "c"):
        shutil.copytree(FINE, tmp_path / name)
    (tmp_path / "b" / "instruction.md").unlink()
    found = candidates(named(FolderPool(path=tmp_path), 3))
    assert [each.name for each in found] == ["a", "b", "c"]
    assert [each.task is None for each in found] == [False, True, False]
    assert "b/instruction.md: missing" in found[1].error
    assert found[0].digest == found[2].digest != found[1].digest
    assert duplicates(found) == {"c": "a"}


def test_tasks_without_a_folder_have_checksums_of_their_own():
    pool = SyntheticPool(split="train", size=8)
    found = candidates(named(pool, 8))
    assert [each.name for each in found] == [pool.build()[index].name for index in range(8)]
    assert len({each.digest for each in found}) == 8
    assert duplicates(found) == {}
    assert pool_folder(named(pool, 8)) is None
    assert pool_folder(named(FolderPool(path=FINE), 1)) == FINE
