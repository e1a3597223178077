import asyncio
import contextlib

import pytest

from t1x.rollout.records import Trial
from t1x.rollout.rollout import rollout
from t1x.rollout.scheduler import Oversample, WaitAll, WholeGroups
from t1x.tasks.task import Task
from t1x.trajectory.ending import EndedBy


def task(name):
    return Task(name, "do it", (), (), ())


def trial(trial_id, given, ended_by=EndedBy.DONE):
    return Trial(trial_id, given, (), ended_by, None, None, (), ())


class Runs:
    """Trials that last as many event-loop turns as told and record what becomes of them; cancelled ones clean up for a while."""

    def __init__(self, lengths, ends=None):
        self.lengths, self.ends = lengths, ends or {}
        self.alive = self.most = 0
        self.cleaned, self.started = [], []

    async def __call__(self, trial_id, given):
        self.alive += 1
        self.most = max(self.most, self.alive)
        self.started.append(trial_id)
        try:
            for _ in range(self.lengths[trial_id]):
                await asyncio.sleep(0)
            end = self.ends.get(trial_id, EndedBy.DONE)
            if isinstance(end, Exception):
                raise end
            return trial(trial_id, given, end)
        except asyncio.CancelledError:
            for _ in range(5):
                await asyncio.sleep(0)
            self.cleaned.append(trial_id)
            return trial(trial_id, given, EndedBy.CANCELLED)
        finally:
            self.alive -= 1


def trials(lengths):
    return {trial_id: task(f"task-{trial_id}") for trial_id in lengths}


def others_running():
    return asyncio.all_tasks() - {asyncio.current_task()}


def play(runs, scheduler, batch, concurrency=99, group_size=1, on_trial=None):
    async def main():
        result = await rollout(
            trials(runs.lengths),
            batch=batch,
            scheduler=scheduler,
            run=runs,
            concurrency=concurrency,
            group_size=group_size,
            on_trial=on_trial,
        )
        assert not others_running()
        return result

    return asyncio.run(main())


def test_waiting_for_all_keeps_the_order_of_launching():
    seen = []
    batch = play(Runs({"a": 9, "b": 1, "c": 5}), WaitAll(), 3, on_trial=lambda t: seen.append(t.id))
    assert [t.id for t in batch.admitted] == ["a", "b", "c"]
    assert batch.others == ()
    assert seen == ["b", "c", "a"]


def test_stragglers_are_cancelled_and_cleaned_up_before_it_returns():
    runs = Runs({"a": 10**9, "b": 1, "c": 3, "d": 10**9})
    batch = play(runs, Oversample(ratio=2), 2)
    assert [t.id for t in batch.admitted] == ["b", "c"]
    assert [(t.id, t.ended_by) for t in batch.others] == [("a", EndedBy.CANCELLED), ("d", EndedBy.CANCELLED)]
    assert sorted(runs.cleaned) == ["a", "d"]


def test_the_rest_of_a_broken_group_is_cancelled_while_others_go_on():
    runs = Runs({"a0": 10**9, "a1": 2, "b0": 9, "b1": 1}, {"a1": EndedBy.SANDBOX_ERROR})
    batch = play(runs, WholeGroups(), 4, group_size=2)
    assert [t.id for t in batch.admitted] == ["b0", "b1"]
    assert [(t.id, t.ended_by) for t in batch.others] == [("a0", EndedBy.CANCELLED), ("a1", EndedBy.SANDBOX_ERROR)]
    assert runs.cleaned == ["a0"]


def test_trials_that_never_started_come_out_as_cancelled():
    runs = Runs({"a": 1, "b": 2, "c": 1, "d": 1})
    batch = play(runs, Oversample(ratio=4), 1, concurrency=1)
    assert [t.id for t in batch.admitted] == ["a"]
    assert [t.id for t in batch.others] == ["b", "c", "d"]
    assert {t.ended_by for t in batch.others} == {EndedBy.CANCELLED}
    assert all(t.task.name == f"task-{t.id}" for t in batch.others)
    assert "d" not in runs.started


def test_invalid_trials_are_replaced_by_surplus_or_leave_the_batch_smaller():
    ends = {"a": EndedBy.SANDBOX_ERROR, "b": EndedBy.ENGINE_ERROR}
    lengths = {"a": 1, "b": 1, "c": 2, "d": 3}
    batch = play(Runs(lengths, ends), Oversample(ratio=2), 2)
    assert [t.id for t in batch.admitted] == ["c", "d"]
    batch = play(Runs(lengths, ends), WaitAll(), 4)
    assert [t.id for t in batch.admitted] == ["c", "d"]
    assert [t.id for t in batch.others] == ["a", "b"]


def test_at_most_concurrency_trials_are_alive():
    runs = Runs(dict.fromkeys(map(str, range(20)), 3))
    assert len(play(runs, WaitAll(), 20, concurrency=4).admitted) == 20
    assert runs.most == 4


def test_an_unexpected_error_ends_every_other_trial_and_is_raised():
    runs = Runs({"a": 10**9, "b": 3, "c": 10**9}, {"b": ZeroDivisionError("a bug")})

    async def main():
        with pytest.raises(ZeroDivisionError, match="a bug"):
            await rollout(trials(runs.lengths), batch=3, scheduler=WaitAll(), run=runs, concurrency=3)
        assert not others_running()

    asyncio.run(main())
    assert sorted(runs.cleaned) == ["a", "c"]


@pytest.mark.parametrize("again", [False, True])
def test_cancelling_it_leaves_no_task_running(again):
    runs = Runs(dict.fromkeys("abcd", 10**9))

    async def main():
        whole = asyncio.create_task(rollout(trials(runs.lengths), batch=4, scheduler=WaitAll(), run=runs, concurrency=2))
        await asyncio.sleep(0.01)
        whole.cancel()
        if again:
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            whole.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await whole
        assert whole.cancelled()
        assert not others_running()

    asyncio.run(main())
    assert sorted(runs.cleaned) == ["a", "b"]


def test_the_number_of_trials_has_to_fit_the_scheduler():
    with pytest.raises(ValueError, match="4 trials are launched for a batch of 2, got 3"):
        play(Runs(dict.fromkeys("abc", 1)), Oversample(ratio=2), 2)
