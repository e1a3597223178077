import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from t1x.rollout.scheduler import Begin, Cancel, Cancelled, Close, Finished, Launch, Oversample, WaitAll, WholeGroups


def play(scheduler, batch, data, group_size=1, deterministic=False):
    """A random order of events, as a rollout could produce it: (launched, closings, cancel requests, what came out as what)."""
    machine = scheduler.build(batch, deterministic)
    launched = tuple(f"t{i}" for i in range(scheduler.launches(batch)))
    actions = machine.step(Begin(launched, group_size), 0.0)
    assert actions == [Launch(trial) for trial in launched]
    alive, asked, closings, out, now = list(launched), set(), [], {}, 0.0
    cost = {trial: data.draw(st.integers(0, 3)) for trial in launched}
    while alive:
        now += 1
        trial = data.draw(st.sampled_from(alive))
        how = data.draw(st.sampled_from(["valid", "valid", "invalid", "cancelled"]))
        alive.remove(trial)
        out[trial] = how
        for action in machine.step(Cancelled(trial) if how == "cancelled" else Finished(trial, how == "valid", cost[trial]), now):
            if isinstance(action, Close):
                closings.append((action.admitted, list(out.items())))
            else:
                assert isinstance(action, Cancel)
                assert action.trial in alive
                assert action.trial not in asked
                asked.add(action.trial)
    return launched, closings, asked, out


schedulers = st.one_of(st.just(WaitAll()), st.builds(Oversample, ratio=st.sampled_from([1.0, 1.09375, 1.5, 3.0])))


@given(schedulers, st.integers(1, 12), st.data())
@settings(deadline=None)
def test_every_launched_trial_comes_out_exactly_once(scheduler, batch, data):
    launched, closings, asked, out = play(scheduler, batch, data)
    ((admitted, at_closing),) = closings
    in_time = [trial for trial, how in at_closing if how == "valid"]
    assert set(admitted) == set(in_time)
    assert list(admitted) == [trial for trial in launched if trial in set(in_time)]
    assert len(admitted) == min(batch, sum(how == "valid" for how in out.values()))
    assert asked == set(launched) - {trial for trial, _ in at_closing}
    assert set(out) == set(launched)


@given(st.integers(1, 12), st.data())
@settings(deadline=None)
def test_wait_all_cancels_nothing_and_waits_for_all(batch, data):
    _, ((admitted, at_closing),), asked, out = play(WaitAll(), batch, data)
    assert not asked
    valid = [trial for trial, how in out.items() if how == "valid"]
    assert set(admitted) == set(valid)
    assert len(at_closing) == batch


@given(st.integers(1, 6), st.integers(1, 5), st.data())
@settings(deadline=None)
def test_only_whole_groups_are_admitted_and_every_trial_comes_out_exactly_once(groups, size, data):
    launched, closings, asked, out = play(WholeGroups(), groups * size, data, size)
    ((admitted, at_closing),) = closings
    assert set(out) == set(launched)
    whole = [launched[first : first + size] for first in range(0, len(launched), size)]
    assert list(admitted) == [trial for group in whole if all(out[trial] == "valid" for trial in group) for trial in group]
    in_time = {trial for trial, _ in at_closing}
    for group in whole:
        failed = {trial for trial in group if out[trial] != "valid"}
        assert failed & in_time or set(group) <= in_time, "it closes when each group is whole or broken"
        assert failed or not asked & set(group), "nothing of a whole group is cancelled"
    assert set(launched) - in_time <= asked, "nothing goes on that can't be admitted"


@given(st.integers(1, 12), st.data())
@settings(deadline=None)
def test_groups_of_one_are_waiting_for_all(batch, data):
    _, ((admitted, at_closing),), asked, out = play(WholeGroups(), batch, data)
    assert not asked
    assert set(admitted) == {trial for trial, how in out.items() if how == "valid"}
    assert len(at_closing) == batch


kinds = st.one_of(schedulers, st.just(WholeGroups()))


@given(kinds, st.integers(1, 4), st.integers(1, 3), st.data())
@settings(deadline=None)
def test_a_deterministic_machine_admits_the_same_in_any_order_and_cancels_nothing(scheduler, groups, size, data):
    size = size if scheduler.whole_groups else 1
    launched = tuple(f"t{i}" for i in range(scheduler.launches(groups * size)))
    out = {trial: data.draw(st.tuples(st.booleans(), st.integers(0, 3))) for trial in launched}

    def admitted(order):
        machine = scheduler.build(groups * size, deterministic=True)
        actions = machine.step(Begin(launched, size), 0.0)
        actions += [action for trial in order for action in machine.step(Finished(trial, *out[trial]), 0.0)]
        assert actions[: len(launched)] == [Launch(trial) for trial in launched]
        (close,) = actions[len(launched) :]
        return close.admitted

    first = admitted(launched)
    assert admitted(data.draw(st.permutations(launched))) == first
    valid = [trial for trial in launched if out[trial][0]]
    if not scheduler.whole_groups:
        assert len(first) == min(groups * size, len(valid))
        assert list(first) == [trial for trial in valid if trial in first]
        dearest = max([(out[trial][1], launched.index(trial)) for trial in first], default=(0, 0))
        assert all((out[trial][1], launched.index(trial)) > dearest for trial in valid if trial not in first)


@given(kinds, st.integers(1, 6), st.data())
@settings(deadline=None)
def test_a_deterministic_machine_lets_every_trial_out_exactly_once(scheduler, batch, data):
    launched, closings, asked, out = play(scheduler, batch, data, deterministic=True)
    assert not asked
    ((admitted, _),) = closings
    assert len(admitted) == min(batch, sum(how == "valid" for how in out.values()))
    assert set(out) == set(launched)


def test_a_group_with_an_invalid_trial_is_left_out_and_its_rest_cancelled():
    machine = WholeGroups().build(4)
    machine.step(Begin(("a0", "a1", "b0", "b1"), 2), 0)
    assert machine.step(Finished("b0", True, 0), 1) == []
    assert machine.step(Finished("a1", False, 0), 2) == [Cancel("a0")]
    assert machine.step(Finished("b1", True, 0), 3) == [Close(("b0", "b1"))]
    assert machine.step(Finished("a0", True, 0), 4) == []


def test_trials_that_are_no_groups_are_refused():
    with pytest.raises(AssertionError, match="5 trials aren't groups of 2"):
        WholeGroups().build(5).step(Begin(tuple("abcde"), 2), 0)


def test_oversampling_launches_the_reports_560_for_512():
    assert Oversample().launches(512) == 560
    assert Oversample().launches(64) == 70
    assert Oversample(ratio=1.1).launches(100) == 110
    assert Oversample(ratio=1.01).launches(10) == 11
    assert WaitAll().launches(64) == 64


def test_oversampling_admits_the_first_to_complete():
    machine = Oversample(ratio=2).build(2)
    machine.step(Begin(("a", "b", "c", "d")), 0)
    assert machine.step(Finished("d", True, 0), 1) == []
    assert machine.step(Finished("a", False, 0), 2) == []
    assert machine.step(Finished("b", True, 0), 3) == [Close(("b", "d")), Cancel("c")]
    assert machine.step(Finished("c", True, 0), 4) == []


def test_a_trial_that_comes_out_twice_is_refused():
    machine = WaitAll().build(2)
    machine.step(Begin(("a", "b")), 0)
    machine.step(Finished("a", True, 0), 1)
    with pytest.raises(AssertionError, match="trial a"):
        machine.step(Cancelled("a"), 2)
    with pytest.raises(AssertionError, match="trial x"):
        machine.step(Finished("x", True, 0), 2)


def test_launching_fewer_than_the_batch_is_refused():
    with pytest.raises(ValidationError, match="ratio"):
        Oversample(ratio=0.9)
