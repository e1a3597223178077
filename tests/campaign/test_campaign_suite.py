"""What suites run, and when."""

import pytest
from pydantic import ValidationError

from t1x.campaign.evaluate import fewer
from t1x.campaign.suite import BenchmarkSuite, Pass, PoolSuite
from t1x.config import load
from t1x.config.smoke import shrink
from t1x.engine.protocol import Decoding
from t1x.harness.shell import ShellHarness
from t1x.tasks.synthetic import SyntheticPool

POOL = SyntheticPool(split="held_out", size=9)


@pytest.mark.parametrize(("every", "due"), [(0, [0, 7]), (3, [0, 3, 6, 7])])
def test_suites_are_run_at_the_start_every_so_often_and_at_the_last_step(every: int, due: list[int]) -> None:
    suite = PoolSuite(name="x", pool=POOL, every=every)
    assert [step for step in range(8) if suite.due(step, 7)] == due


def test_a_pool_suite_runs_the_modes_that_have_tasks() -> None:
    greedy = Pass("greedy", "greedy", Decoding(0.0), 5, ending="_greedy")
    sampled = Pass("sampled", "T = 1", Decoding(1.0), 7)
    assert PoolSuite(name="x", pool=POOL, greedy=5, sampled=7).passes() == (greedy, sampled)
    assert PoolSuite(name="x", pool=POOL, greedy=5).passes() == (greedy,)
    assert PoolSuite(name="x", pool=POOL).passes() == ()


def test_a_pool_with_fewer_tasks_than_were_asked_for_is_told() -> None:
    assert fewer(8, 50) == " (there are only 8; 50 were asked for)"
    assert fewer(8, 8) == fewer(8, None) == ""


def test_a_benchmark_is_run_as_the_report_runs_it() -> None:
    (each,) = BenchmarkSuite(name="x", pool=POOL).passes()
    assert each == Pass("benchmark", "T = 0.1, 3 attempts", Decoding(0.1, 0.95, 20), None, 3, "resolved_rate", None)
    harness = ShellHarness(max_turns=60)
    (each,) = BenchmarkSuite(name="x", pool=POOL, harness=harness, measure="partial_credit", attempts=1, tasks=4).passes()
    assert (each.label, each.harness, each.measure, each.tasks) == ("T = 0.1", harness, "partial_credit", 4)


def test_partial_credit_needs_a_record_of_each_assertion() -> None:
    pool = SyntheticPool(split="held_out", size=9, per_assertion=False)
    with pytest.raises(
        ValidationError, match=r"suite x: partial_credit needs a record .* SyntheticPool .* set measure to 'resolved_rate'"
    ):
        BenchmarkSuite(name="x", pool=pool, measure="partial_credit")
    BenchmarkSuite(name="x", pool=pool)


def test_a_smoke_test_runs_two_tasks_once() -> None:
    small = shrink(BenchmarkSuite(name="x", pool=POOL, every=4))
    assert (small.tasks, small.attempts, small.every) == (2, 1, 4)
    assert [each.tasks for each in shrink(PoolSuite(name="x", pool=POOL, greedy=1, sampled=7)).passes()] == [1, 2]


def test_a_suites_own_harness_fits_the_engine_too() -> None:
    with pytest.raises(ValueError, match="harness ShellHarness lets a trial grow to 4096 tokens, but"):
        load(
            "experiments/quickstart.gin",
            set=[
                "Campaign.suites = [@BenchmarkSuite()]",
                "BenchmarkSuite.name = 'x'",
                "BenchmarkSuite.pool = @held_out/SyntheticPool()",
                "BenchmarkSuite.harness = @wide/ShellHarness()",
                "wide/ShellHarness.context_tokens = 4096",
            ],
        )
