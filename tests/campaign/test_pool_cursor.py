from hypothesis import given
from hypothesis import strategies as st

from t1x.campaign.cursor import PoolCursor


@given(size=st.integers(1, 20), takes=st.lists(st.integers(1, 30), min_size=1, max_size=8), seed=st.integers(0, 99))
def test_every_epoch_takes_every_task_once(size: int, takes: list[int], seed: int) -> None:
    cursor = PoolCursor(size, seed)
    taken = [task for count in takes for task in cursor.take(count)]
    for start in range(0, len(taken) - size + 1, size):
        assert sorted(taken[start : start + size]) == list(range(size))
    assert cursor.taken == len(taken) == sum(takes)


def test_how_the_walk_is_cut_into_batches_does_not_change_it() -> None:
    one, other = PoolCursor(7, 3), PoolCursor(7, 3)
    assert one.take(20) == [task for count in (3, 9, 8) for task in other.take(count)]


def test_epochs_differ_in_order() -> None:
    cursor = PoolCursor(30, 0)
    assert cursor.take(30) != cursor.take(30)


@given(st.data())
def test_what_is_given_back_comes_first_and_the_walk_goes_on_behind_it(data: st.DataObject) -> None:
    cursor, whole = PoolCursor(6, 1), PoolCursor(6, 1).take(60)
    expected, walked = [], 0
    for _ in range(data.draw(st.integers(1, 6))):
        count = data.draw(st.integers(1, 8))
        taken = cursor.take(count)
        fresh = max(0, count - len(expected))
        assert taken == expected[:count] + whole[walked : walked + fresh]
        walked, expected = walked + fresh, expected[count:]
        back = [task for task in taken if data.draw(st.booleans())]
        cursor.give_back(back)
        expected = back + expected


def test_a_restored_walk_goes_on_where_it_stood() -> None:
    one, other = PoolCursor(7, 3), PoolCursor(7, 3)
    one.give_back(one.take(5)[:3])
    state = one.state()
    rest = one.take(12)
    other.restore(state)
    assert other.take(12) == rest
