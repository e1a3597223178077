"""What the README and docs/ tell a reader to do, done."""

import doctest
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from t1x.campaign.suite_file import suites_in
from t1x.cli.catalog import catalog
from t1x.config import ConfigError, discover, load
from t1x.engine.protocol import Completion
from t1x.grading.report import VerifierReport
from t1x.grading.reward import BinaryReward, LengthPenalty, Spent, TestCountReward
from t1x.rollout.evaluation import evaluation_metrics
from t1x.rollout.records import Trial
from t1x.tasks.task import Task
from t1x.trajectory.audit import audit
from t1x.trajectory.ending import EndedBy
from t1x.trajectory.records import Turn
from t1x.trajectory.stitcher import TokenStitcher

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def commands(program: str) -> list[tuple[str, ...]]:
    """Every different command of a program in the `sh` blocks, in words, comments left out."""
    lines = {
        line
        for page in PAGES
        for block in blocks(page, "sh")
        for line in block.replace("\\\n", " ").splitlines()
        if line.startswith(program + " ")
    }
    return sorted({tuple(shlex.split(line, comments=True)) for line in lines})


def after(words, option):
    """What stands behind an option; None where there is no such."""
    return next((value for word, value in pairwise(words) if word == option), None)


LOADING = [
    words for words in commands("t1x") if words[1] in ("run", "show", "check") and re.fullmatch(r"experiments/\w+\.gin", words[2])
]


@pytest.mark.parametrize("words", LOADING, ids=shlex.join)
def test_every_experiment_in_a_command_loads(words, monkeypatch):
    monkeypatch.chdir(ROOT)
    settings = [after for word, after in pairwise(words) if word == "--set"]
    site = next((after for word, after in pairwise(words) if word == "--site"), "laptop")
    assert load(words[2], site=site, set=settings).root


@pytest.mark.parametrize(
    "words", [words for words in commands("t1x") if words[1] == "list" and "--import" not in words], ids=shlex.join
)
def test_every_name_that_is_listed_exists(words):
    discover()
    assert catalog(words[2] if len(words) > 2 else None)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_and_make_target_is_there(page):
    text = page.read_text()
    for link in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (page.parent / link).exists(), f"{page.name} links to {link}"
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    lines = [line for block in blocks(page, "sh") for line in block.splitlines() if re.match(r"(\w+=\S+ )?make ", line)]
    for words in (shlex.split(line.split("make ", 1)[1], comments=True) for line in lines):
        assert {word for word in words if "=" not in word} <= targets


def test_the_readme_shows_the_experiment_as_it_is():
    experiment = (ROOT / "experiments" / "quickstart.gin").read_text().splitlines()
    (excerpt,) = blocks(ROOT / "README.md", "gin")
    assert set(excerpt.split("\n")) <= {*experiment, ""}


def test_the_mistakes_in_gin_md_are_told_as_it_says(tmp_path, monkeypatch):
    page = (ROOT / "docs" / "gin.md").read_text()
    source, told = re.search(r"## Mistakes\n\n```gin\n(.*?)```\n\n```\n\$ t1x check mine\.gin\n(.*?)```", page, re.DOTALL).groups()
    monkeypatch.chdir(tmp_path)
    Path("mine.gin").write_text(source)
    with pytest.raises(ConfigError) as caught:
        load("mine.gin")
    assert f"mine.gin: {caught.value}".rstrip() == told.rstrip()


def test_the_suites_in_evaluation_md_are_suites(tmp_path):
    (page,) = (page for page in PAGES if page.name == "evaluation.md")
    (excerpt,) = blocks(page, "gin")
    (tmp_path / "mine.gin").write_text("include 'experiments/quickstart.gin'\n" + excerpt)
    held_out, tb21 = load(tmp_path / "mine.gin", site="laptop").root.suites
    assert (held_out.name, held_out.every, tb21.name, tb21.attempts) == ("held_out", 10, "tb21", 3)


@pytest.mark.parametrize("words", [words for words in commands("t1x") if words[1] == "eval"], ids=shlex.join)
def test_every_suite_that_is_evaluated_on_is_there(words, tmp_path):
    own = {suite.name for suite in load("experiments/quickstart.gin", site="laptop").root.suites}
    assert words[2].startswith(("quickstart-", "runs/quickstart-")) or after(words, "--like") == "experiments/quickstart.gin"
    suite = after(words, "--suite")
    if suite == "mine.gin":
        (excerpt,) = [block for block in blocks(ROOT / "docs" / "pools.md", "gin") if "PoolSuite" in block]
        (tmp_path / suite).write_text(excerpt)
        suite = str(tmp_path / suite)
    assert suite in own or suites_in(suite, "laptop")


def test_every_measure_in_evaluation_md_is_one():
    """Each name of the table's first column, of a suite with two attempts at one of two tasks."""
    task = Task("a", "", (), (), (), ("sort",), "easy")
    turn = Turn(0, np.ones(1, np.int32), Completion(*(np.ones(1, np.int32),) * 3, 0, "stop", 0), 1.0)
    ended = [("a", True), ("a", False), ("b", False)]
    trials = [
        Trial(name, replace(task, name=name), (turn,), EndedBy.DONE, VerifierReport((("x", ok),)), 1.0, (), ())
        for name, ok in ended
    ]
    found = evaluation_metrics(trials)
    table = re.findall(r"^\| (`.*?) \|", (ROOT / "docs" / "evaluation.md").read_text(), re.MULTILINE)
    names = [name for cell in table for name in re.findall(r"`([^`]+)`", cell)]
    assert len(names) > 10
    for name in names:
        pattern = re.escape(name).replace("<k>", r"\d+").replace("<name>", r"\w+").replace("<how>", r"\w+").replace("…", ".+")
        assert any(re.fullmatch(pattern, metric) for metric in found), name


def test_the_reward_in_your_own_md_works(tmp_path):
    page = (ROOT / "docs" / "your-own.md").read_text()
    (module,) = re.findall(r"```python\n# my_rewards\.py\n(.*?)```", page, re.DOTALL)
    (tmp_path / "my_rewards.py").write_text(module)
    (experiment,) = re.findall(r"```gin\n(.*?import my_rewards.*?)```", page, re.DOTALL)
    (tmp_path / "mine.gin").write_text(experiment)
    program = Path(sys.executable).with_name("t1x")

    def said(*words: str) -> str:
        done = subprocess.run([program, *words], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        return done.stdout + done.stderr

    assert "AllButOne.tolerated = 1" in said("show", "mine.gin", "--site", "laptop", "--format", "gin")
    listing = [words for words in commands("t1x") if "--import" in words]
    assert len(listing) == 2
    for words in listing:
        assert "1 where at most one assertion fails." in said(*words[1:])


def test_the_reward_in_your_own_md_pays_what_it_says():
    page = (ROOT / "docs" / "your-own.md").read_text()
    (module,) = re.findall(r"```python\n# my_rewards\.py\n(.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {"__name__": "my_rewards"}
    exec(module, names)
    reward = names["AllButOne"]()
    for failing, worth in ((0, 1.0), (1, 1.0), (2, 0.0)):
        report = VerifierReport(tuple((f"t{index}", index >= failing) for index in range(3)))
        assert (reward.objection(report), reward(report, Spent(1, 9))) == ("", worth)
    assert reward.objection(VerifierReport((), "missing", "no report")) == "missing: no report"


def test_the_stitcher_in_your_own_md_changes_what_it_says_and_is_told_by_the_auditor(tmp_path, monkeypatch):
    page = (ROOT / "docs" / "your-own.md").read_text()
    (module,) = re.findall(r"```python\n# my_stitchers\.py\n(.*?)```", page, re.DOTALL)
    (tmp_path / "my_stitchers.py").write_text(module)
    (experiment,) = re.findall(r"```gin\n([^`]*?import my_stitchers.*?)```", page, re.DOTALL)
    (tmp_path / "mine.gin").write_text(experiment)
    monkeypatch.syspath_prepend(str(tmp_path))
    root = load(tmp_path / "mine.gin", site="laptop").root
    tokenizer = root.tokenizer.build()
    prompt, answer = tokenizer.encode("list the files"), tokenizer.encode("ls -a")
    logprobs = np.linspace(-1.234, -0.111, len(answer), dtype=np.float32)
    rows = np.zeros((len(prompt) + len(answer) - 1, 0, 0), np.uint8)
    turns = [Turn(0, prompt, Completion(answer, logprobs, rows, 0, "stop", 0), 1.0)]
    (sample,) = root.stitcher.stitch("t", turns, tokenizer, None)
    (plain,) = TokenStitcher().stitch("t", turns, tokenizer, None)
    assert sample.token_ids.tolist() == plain.token_ids.tolist()
    assert sample.logprobs.tolist() == pytest.approx([round(float(each), 2) for each in plain.logprobs])
    found = audit(turns, [sample], "t")
    assert (root.stitcher.faithful, found.own_turn_violations, found.loss_tokens) == (False, len(answer), len(answer))
    assert audit(turns, [plain], "t").violations == 0


def test_the_examples_in_rewards_md_come_to_what_it_says():
    text = "\n".join(blocks(ROOT / "docs" / "rewards.md", "python"))
    examples = doctest.DocTestParser().get_doctest(text, {}, "rewards.md", None, None)
    assert len(examples.examples) > 10
    assert doctest.DocTestRunner(optionflags=doctest.REPORT_UDIFF).run(examples).failed == 0


def test_the_rewards_in_rewards_md_are_some(tmp_path):
    excerpts = blocks(ROOT / "docs" / "rewards.md", "gin")
    rewards = []
    for excerpt in excerpts:
        (tmp_path / "mine.gin").write_text(
            f"include 'experiments/quickstart.gin'\nCampaign.pool = @FolderPool()\nFolderPool.path = '{tmp_path}'\n{excerpt}"
        )
        rewards.append(load(tmp_path / "mine.gin", site="laptop").root.reward)
    assert rewards == [
        LengthPenalty(reward=TestCountReward(), coefficient=0.01),
        TestCountReward(exclude_baseline=False),
        BinaryReward(),
    ]


def test_no_name_of_your_own_md_is_taken_by_the_example_package():
    page = (ROOT / "docs" / "your-own.md").read_text()
    package = (ROOT / "examples" / "t1x_example" / "t1x_example" / "reward.py").read_text()
    assert not set(re.findall(r"class (\w+)\(Reward\)", page)) & set(re.findall(r"class (\w+)\(Reward\)", package))


def test_the_site_in_gin_md_is_one(tmp_path, monkeypatch):
    (overlay,) = re.findall(r"site\.gin` of yours.*?```gin\n(.*?)```", (ROOT / "docs" / "gin.md").read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    site = tmp_path / "registry" / "sites" / "box"
    site.mkdir(parents=True)
    (site / "site.gin").write_text(overlay)
    discover()
    listed = [" ".join(line.split()) for line in catalog("sites").splitlines()]
    assert overlay.splitlines()[0].replace("#", "box", 1) in listed
    assert load("experiments/dense_t1_15k.gin", site="box").root.steps == 100
