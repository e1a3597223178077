"""What a gap is measured on: weights, the campaign that they go with, and trials."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from t1x.campaign.assembly import first, named, trial_runner
from t1x.campaign.campaign import Campaign
from t1x.campaign.checkpoint_evaluation import Weights, find_weights
from t1x.campaign.gap_measure import Trials
from t1x.campaign.gap_trials import Matched, matched
from t1x.campaign.policy_version import told_weights, version_of
from t1x.campaign.progress import ProgressReport
from t1x.campaign.run_trials import trials_of
from t1x.config import load
from t1x.config.names import with_article
from t1x.config.requirements import NotHere, missing
from t1x.engine.protocol import Decoding
from t1x.model.checkpoint import to_hf
from t1x.model.transformer import MoeTransformer
from t1x.rollout.rollout import rollout
from t1x.rollout.scheduler import WaitAll
from t1x.text.tokenizer import ChatTokenizer
from t1x.trajectory.storage_folder import batch_files, of_untrained
from t1x.trajectory.storage_reader import read_header, read_trials


@dataclass(frozen=True, slots=True)
class Origin:
    """Where trials are from."""

    trials: str
    """Which ones and how many."""
    sampled_by: str = ""
    """The run that sampled them, as their file has it; empty for new ones, and where it doesn't say."""
    versions: tuple[int, ...] = ()
    """Of its policy, rising; empty for new ones."""
    measured_with: str = ""
    """The weights."""
    note: str = ""
    """Why these weights aren't what sampled them; empty where they are, or nobody knows."""


@dataclass(frozen=True, slots=True)
class GapSource:
    """Weights and the campaign whose trainer, tokenizer and harness go with them."""

    weights: Weights
    campaign: Campaign

    def stored(
        self, step: str | None, file: Path | None, limit: int | None, warn: Callable[[str], None]
    ) -> tuple[Weights, Trials, Origin]:
        """At most `limit` stored trials, of a file, of a batch of the run (see `trials_of`) or of whatever it has kept; the
        weights that go with them, and where they're from: see `matched`. What isn't named is only looked at for trials at the
        temperature of training, since a suite may have another. Raises `ValueError` where there are none."""
        of_run = file is None or self._of_run(read_header(file).identity)
        temperature = self.campaign.temperature if file is None and step is None else None
        chosen = matched(self.weights, [file] if file else self._files(step), of_run, temperature, warn)
        wanted = (trial for trial in read_trials(chosen.path) if trial.id in chosen.ids)
        trials = {trial.id: trial.turns for trial in islice(wanted, limit)}
        return chosen.weights, trials, self._origin(chosen, trials)

    def _of_run(self, identity: Mapping[str, str]) -> bool:
        """Whether trials of this identity may be of the run that the weights are of."""
        own = self.weights.run
        return own is None or identity.get("run", "") in ("", own.folder.name) or identity.get("started") == own.identity["started"]

    def _origin(self, chosen: Matched, trials: Trials) -> Origin:
        identity, weights = read_header(chosen.path).identity, chosen.weights
        versions, version = {turn.completion.version for turns in trials.values() for turn in turns}, version_of(weights)
        name, note = told_weights(weights), ""
        if not self._of_run(identity):
            note = f"another run sampled these trials than the one that {name} is of"
        elif of_untrained(identity):
            note = f"the untrained policy sampled these trials, not {name}"
        elif version is not None and versions != {version}:
            note = f"{name} has version {version}, which didn't sample {'all of ' if version in versions else ''}these trials"
        if note:
            note += "; the gap is that of this policy on ids that another one chose"
        if weights.policy != self.weights.policy:
            name += f", since no stored trials are of {told_weights(self.weights)}"
        told = f"{len(trials)} stored trials of {chosen.path}"
        return Origin(told, identity.get("run", ""), tuple(sorted(versions)), name, note)

    def _files(self, step: str | None) -> list[Path]:
        """Of the run's trials, the newest first: a batch, or all batches and passes over suites but those of the untrained policy,
        which no checkpoint has."""
        if (own := self.weights.run) is None:
            raise ValueError(
                f"{self.weights.policy} lies in no run, so it has no stored trials; name a file of them, or --sample N"
            )
        try:
            files = trials_of(own, step)
        except ValueError as error:
            raise ValueError(f"{error}; --sample N runs new ones") from error
        if step is None:
            files = [file for file in batch_files(own.folder) if file.step is not None]
        return [file.path for file in reversed(files)]

    async def sampled(
        self, policy: MoeTransformer, tokenizer: ChatTokenizer, count: int, progress: ProgressReport
    ) -> tuple[Trials, Origin]:
        """New trials in real sandboxes, on the first tasks of the campaign's pool, and how they came about."""
        campaign = self.campaign
        tasks = first(campaign.pool.build(), count)
        host = campaign.sandbox.build(deterministic=campaign.deterministic)
        try:
            engine = campaign.engine.build(policy.config, to_hf(policy), deterministic=campaign.deterministic)
            try:
                with progress.phase("new trials", len(tasks)) as phase:
                    rolled = await rollout(
                        named("gap", 0, tasks),
                        batch=len(tasks),
                        scheduler=WaitAll(),
                        run=trial_runner(campaign, host, tokenizer, engine, "gap", 0, Decoding(campaign.temperature)),
                        concurrency=campaign.concurrency,
                        on_trial=lambda _: phase.advance(),
                    )
            finally:
                await engine.close()
        finally:
            await host.close()
        trials = {trial.id: trial.turns for trial in rolled.admitted}
        dtype = getattr(campaign.engine, "dtype", "")
        how = f"temperature {campaign.temperature:g}, seed {campaign.seed}, by {with_article(f'{dtype} engine'.strip())}"
        return trials, Origin(f"{len(trials)} new trials ({how})")


def gap_source(
    checkpoint: str,
    *,
    like: str | None = None,
    site: str | None = None,
    set: Sequence[str] = (),
    runs: Path = Path("runs"),
    sandboxes: bool = False,
) -> GapSource:
    """The weights that `checkpoint` means (a run, a checkpoint's folder, a policy's) and the campaign: the run's own, or `like`,
    under the Gin texts of `set`. Raises `ValueError` for what the user can mend, `NotHere` for what this machine lacks, where
    `sandboxes` also for running trials."""
    weights = find_weights(checkpoint, runs)
    source = like or (str(weights.run.folder / "config.gin") if weights.run else None)
    if source is None:
        raise ValueError(
            f"{weights.policy} lies in no run, so nothing says which trainer and tokenizer go with it; name an experiment that has "
            f"them, as in --like experiments/quickstart.gin"
        )
    campaign = load(source, site=site, set=set).root
    if not isinstance(campaign, Campaign):
        raise ValueError(
            f"{source} describes {with_article(type(campaign).__name__)}, which trains nothing; a gap is one between an engine "
            f"and a trainer, so name a campaign with --like"
        )
    parts = [campaign] if sandboxes else [campaign.trainer, campaign.tokenizer]
    if lacks := [lack for part in parts for lack in missing(part)]:
        raise NotHere(lacks, campaign.site)
    return GapSource(weights, campaign)
