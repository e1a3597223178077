"""Pools that are known by their names."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from t1x.config import Role
from t1x.tasks.export import export_pool
from t1x.tasks.folder import FolderPool
from t1x.tasks.named import NamedPool
from t1x.tasks.synthetic import SyntheticPool


def test_its_tasks_are_those_of_the_site() -> None:
    tasks = SyntheticPool(split="train", size=5)
    pool = NamedPool(name="t1_15k", per_assertion=True, order="quality", size=5, tasks=tasks).build()
    assert [pool[i] for i in range(len(pool))] == [tasks.build()[i] for i in range(5)]


@pytest.mark.parametrize("size", [4, 6])
def test_another_number_of_tasks_is_refused_when_it_is_opened(size: int, tmp_path: Path) -> None:
    export_pool(SyntheticPool(split="train", size=5).build(), tmp_path / "pool")
    pool = NamedPool(name="t1_15k", per_assertion=True, size=size, tasks=FolderPool(path=tmp_path / "pool"))
    with pytest.raises(ValueError, match=f"pool t1_15k has size = {size}, but its tasks, a FolderPool, are 5; set size to that"):
        pool.build()


@pytest.mark.parametrize("per_assertion", [True, False])
def test_tasks_with_other_verifiers_are_refused(per_assertion: bool) -> None:
    tasks = SyntheticPool(split="train", size=5, per_assertion=not per_assertion)
    with pytest.raises(ValidationError, match=f"pool x has per_assertion = {per_assertion}, but its tasks, a SyntheticPool, have"):
        NamedPool(name="x", per_assertion=per_assertion, size=5, tasks=tasks)


def test_a_site_changes_where_tasks_come_from_but_not_what_pool_it_is() -> None:
    roles = {name: NamedPool.role(name) for name in NamedPool.model_fields}
    assert {name for name, role in roles.items() if role is Role.SCALE} == {"size", "tasks"}
    assert {name for name, role in roles.items() if role is Role.ALGORITHM} == {"name", "per_assertion", "order"}
