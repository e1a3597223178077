"""A deterministic experiment whose parts can't be so is refused when the file is loaded, with what to set."""

from collections.abc import Sequence

import pytest

from t1x.campaign.campaign import Campaign
from t1x.config import ConfigError, load
from t1x.rollout.scheduler import Oversample, Scheduler, WaitAll, WholeGroups

EXPERIMENT = "experiments/quickstart.gin"
ON = "Campaign.deterministic = True"


class FirstCome(Scheduler):
    """Of a user's own; whether it can be deterministic isn't said."""

    def launches(self, batch: int) -> int:
        return batch


def test_the_shipped_quickstart_can_be_deterministic() -> None:
    assert not load(EXPERIMENT).root.deterministic
    assert load(EXPERIMENT, set=[ON]).root.deterministic


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            ["EmbeddedEngine.max_sessions = 8", "Campaign.concurrency = 9"],
            ["engine EmbeddedEngine", "max_sessions (8) is less than the concurrency of 9", "raise it to 9"],
        ),
        (["Campaign.engine = @SGLangEngine()", "SGLangEngine.device = 'cpu'"], ["engine SGLangEngine", "use @EmbeddedEngine()"]),
        (["Campaign.sandbox = @ProcessSandbox()"], ["sandbox ProcessSandbox", "clock", "use @BubblewrapSandbox()"]),
        (["Campaign.sandbox = @DaytonaSandbox()"], ["sandbox DaytonaSandbox", "use @BubblewrapSandbox()"]),
        (["Campaign.scheduler = @FirstCome()"], ["scheduler FirstCome", "use @WaitAll()"]),
    ],
)
def test_a_part_that_cannot_be_deterministic_is_refused(settings: Sequence[str], said: Sequence[str]) -> None:
    load(EXPERIMENT, set=settings)
    with pytest.raises(ConfigError) as refused:
        load(EXPERIMENT, set=[*settings, ON])
    for text in ("deterministic is set", *said):
        assert text in str(refused.value)


def test_what_a_deterministic_sandbox_needs_is_missing_only_where_it_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    for settings, needed in (([], False), ([ON], True)):
        campaign = load(EXPERIMENT, set=settings).root
        assert isinstance(campaign, Campaign)
        assert any("program cc" in line for line in campaign.missing()) is needed


def test_tasks_return_to_the_pool_only_where_it_is_said() -> None:
    assert not any(each.returns_cancelled for each in (WaitAll(), Oversample(), WholeGroups()))
    assert Oversample(returns_cancelled=True).returns_cancelled
