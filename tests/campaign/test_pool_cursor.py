from hypothesis import given
from hypothesis import strategies as st

from t1x.campaign.cursor import PoolCursor
from t1x.tasks.task import Task


def pool(size: int) -> list[Task]:
    return [Task(str(index), "", (), (), ()) for index in range(size)]


@given(size=st.integers(1, 20), takes=st.lists(st.integers(1, 30), min_size=1, max_size=8), seed=st.integers(0, 99))
def test_every_epoch_takes_every_task_once(size: int, takes: list[int], seed: int) -> None:
    cursor = PoolCursor(pool(size), seed)
    names = [task.name for count in takes for task in cursor.take(count)]
    for start in range(0, len(names) - size + 1, size):
        assert sorted(names[start : start + size], key=int) == [str(index) for index in range(size)]
    assert cursor.taken == len(names) == sum(takes)


def test_how_the_walk_is_cut_into_batches_does_not_change_it() -> None:
    one, other = PoolCursor(pool(7), 3), PoolCursor(pool(7), 3)
    assert [task.name for task in one.take(20)] == [task.name for count in (3, 9, 8) for task in other.take(count)]


def test_epochs_differ_in_order() -> None:
    cursor = PoolCursor(pool(30), 0)
    assert [task.name for task in cursor.take(30)] != [task.name for task in cursor.take(30)]
