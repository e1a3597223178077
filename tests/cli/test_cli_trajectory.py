"""`t1x trajectory`, as a user gives it; what it reads is tested in tests/trajectory."""

import base64
import json
import math
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from t1x.cli import main
from t1x.config import dump, load
from t1x.engine.protocol import Completion
from t1x.text.chat import bundled
from t1x.trajectory.ending import EndedBy
from t1x.trajectory.records import Boundary, Trajectory, Turn, VersionSpan
from t1x.trajectory.stitcher import RetokenizingStitcher, Stitcher, TokenStitcher
from t1x.trajectory.storage_folder import batch_path, step_name
from t1x.trajectory.storage_writer import TrialWriter
from t1x.trajectory.stored import StoredTrial

NAME = "quick-1a-0"
EVIL = "\x1b[31mred\x07 </pre><script>alert('x')</script> [bold]b[/bold] \u202eback & \"quoted\""
"""What a program may print to have its way with a terminal or a page."""


def made(name: str, texts: list[tuple[str, str]], reward: float | None = 0.25, task: str = "sort-3") -> StoredTrial:
    """Each turn adds a text to its prompt and samples an answer; each captures the last three rows of the turn before again, of
    which one has another expert."""
    turns, history, mask, logprobs = [], np.array([], np.int32), [], []
    routing = np.empty((0, 1, 2), np.uint8)
    for index, (added, answer) in enumerate(texts):
        prompt, ids = np.concatenate([history, bundled().encode(added)]), bundled().encode(answer)
        begins = max(0, len(routing) - 3)
        fresh = len(prompt) + len(ids) - 1 - len(routing)
        again = routing[begins:].copy()
        again[:1, 0, 0] += 1
        routing = np.concatenate([routing, np.tile(np.array([[1, 4]], np.uint8), (fresh, 1, 1))])
        own = np.linspace(-3, -0.01, len(ids)).astype(np.float32)
        captured = np.concatenate([again, routing[len(routing) - fresh :]])
        turns.append(Turn(index, prompt, Completion(ids, own, captured, begins, "stop", 7), 1.0, placeholder_tokens=index))
        mask += [False] * (len(prompt) - len(history)) + [True] * len(ids)
        logprobs += [0.0] * (len(prompt) - len(history)) + own.tolist()
        history = np.concatenate([prompt, ids])
    n = len(history)
    stream = Trajectory(
        token_ids=history,
        loss_mask=np.array(mask),
        logprobs=np.array(logprobs, np.float32),
        routed_experts=routing,
        versions=(VersionSpan(0, n, 7),),
        boundaries=(Boundary.EXACT,) * (len(texts) - 1),
        temperature=1.0,
        substituted_rows=(1,),
    )
    return StoredTrial(name, task, EndedBy.DONE, reward, None if reward is None else True, tuple(turns), (stream,))


TWO = [("sort the lines of a file", "sort a"), (EVIL, "done")]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run in the runs folder of the working directory, with three batches of trials."""
    folder = tmp_path / "runs" / NAME
    folder.mkdir(parents=True)
    record = {"name": "quick", "kind": "Campaign", "run_digest": "d", "study_digest": "s", "seed": 0, "site": None}
    (folder / "run.json").write_text(json.dumps({**record, "experiment": "", "status": "finished", "steps": 12, "started": 1.0}))
    (folder / "config.gin").write_text(dump(load("experiments/quickstart.gin").root))
    invalid = replace(made("train-12-1", TWO, None), trajectories=(), ended_by=EndedBy.ENGINE_ERROR)
    batches = {
        ("warmup", 0): [made("demonstration-0", TWO)],
        ("train", 2): [made("demonstration-0", TWO)],
        ("train", 12): [made("train-12-0", TWO), invalid, made("train-12-2", [("a" * 3000, "b" * 400)] * 30)],
    }
    for (purpose, step), trials in batches.items():
        with TrialWriter(batch_path(folder, purpose, step), {"run": NAME}) as writer:
            for each in trials:
                writer.add(each)
    monkeypatch.chdir(tmp_path)
    return folder


def said(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert main(["trajectory", *words]) == code
    out, err = capsys.readouterr()
    assert (err == "") == (code == 0), err
    return out or err


def test_the_newest_batch_is_listed(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = said(capsys, "list", NAME).splitlines()
    trial = made("train-12-0", TWO)
    tokens, loss = len(trial.trajectories[0].token_ids), int(trial.trajectories[0].loss_mask.sum())
    assert lines[2].split() == ["train-12-0", "sort-3", "done", "0.25", "yes", "2", f"{loss}/{tokens}"]
    assert lines[3].split() == ["train-12-1", "sort-3", "engine_error", "2", "0/0"]
    summary = " ".join(" ".join(lines[5:]).split())
    assert summary.startswith("train-12, the newest batch: 3 trials, mean reward 0.250, ")
    assert summary.endswith("tokens, boundaries: 30 exact kept: warmup-0, train-2, train-12")
    assert "demonstration-0" in said(capsys, "list", "quick", "--step", "2")
    assert "demonstration-0" in said(capsys, "list", str(run), "--step", "warmup-0")


def test_a_list_fits_into_80_columns_and_names_boundaries_that_are_not_exact(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    whole = made("train-9-63", TWO, 0.125, task="train-000004-4d9461a3")
    stream = replace(whole.trajectories[0], boundaries=(Boundary.RETOKENIZED,))
    limit = replace(made("train-9-64", [("ab " * 90, "cd " * 30)] * 2, task="train-000005-3f2a91bc"), ended_by=EndedBy.TURN_LIMIT)
    with TrialWriter(batch_path(run, "train", 9), {}) as writer:
        writer.add(replace(whole, trajectories=(stream,)))
        writer.add(limit)
    lines = said(capsys, "list", NAME, "--step", "9").splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[1].split()[-2:] == ["tokens", "exact"]
    row = lines[2].split()
    assert (row[0], row[1], row[-1]) == ("train-9-63", "train-000004-4d9461a3", "1")
    assert lines[3].split()[-1] == "0"
    assert "boundaries: 1 exact, 1 retokenized kept: " in " ".join(" ".join(lines).split())


def test_ids_are_never_cut_nor_wrapped(run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    ids = [f"eval-held_out-sampled-untrained-{number}-5" for number in (0, 1234)]
    with TrialWriter(batch_path(run, "eval-held_out-sampled", None), {}) as writer:
        for each in ids:
            long = replace(made(each, [("ab " * 90, "cd " * 30)] * 2, -0.123456, task="a-task-of-a-long-name-" * 3))
            stream = replace(long.trajectories[0], boundaries=(Boundary.RETOKENIZED,))
            writer.add(replace(long, trajectories=(stream,), ended_by=EndedBy.SANDBOX_ERROR))
    lines = said(capsys, "list", NAME, "--suite", "held_out").splitlines()
    loss, tokens = int(stream.loss_mask.sum()), len(stream.token_ids)
    rows = [line.split() for line in lines if line.startswith("eval-") and "mean" not in line]
    assert [row[0] for row in rows] == ids
    assert [row[-5:] for row in rows] == [["-0.123456", "yes", "2", f"{loss}/{tokens}", "1"]] * 2
    assert "…" not in "".join(lines[:-2])


def by_bytes(name: str, stitcher: Stitcher) -> StoredTrial:
    """A trial whose answers were sampled byte by byte, as nobody would encode them, and whose second turn restarts."""
    tokenizer, turns = bundled(), []
    stitched = stitcher.build(tokenizer, None)
    for index, answer in enumerate(("the cat", "the sort")):
        ids = np.array([tokenizer.encode(letter)[0] for letter in answer] + [tokenizer.stop_ids[0]], np.int32)
        logprobs = np.full(len(ids), -6, np.float32)
        prompt = tokenizer.first_prompt(f"look {index}")
        done = Completion(ids, logprobs, np.empty((len(prompt) + len(ids) - 1, 0, 0), np.uint8), 0, "stop", 7)
        turns.append(Turn(index, prompt, done, 1.0, restarted=index > 0))
        stitched.add(turns[-1])
    return StoredTrial(name, "sort-3", EndedBy.DONE, 0.25, True, tuple(turns), tuple(stitched.finish()))


def test_ids_that_were_never_sampled_are_not_told_as_sampled(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trial = by_bytes("anew", RetokenizingStitcher())
    other = by_bytes("other", TokenStitcher())
    ids = other.trajectories[0].token_ids.copy()
    ids[-2] += 1
    other = replace(other, trajectories=(replace(other.trajectories[0], token_ids=ids), *other.trajectories[1:]))
    with TrialWriter(batch_path(run, "train", 1), {}) as writer:
        for each in (trial, by_bytes("kept", TokenStitcher()), other):
            writer.add(each)
    text = " ".join(said(capsys, "show", NAME, "anew").split())
    n, sampled = int(trial.trajectories[0].loss_mask.sum()), len(trial.turns[0].completion.ids)
    assert n < sampled
    mean = -6 * sampled / n  # the sum is kept
    told = f"not sampled: {n} ids, encoded anew from {sampled} sampled (mean log-probability -6.000); with loss, "
    assert f"{told}mean log-probability {mean:.3f}" in text
    assert "turn 0: encoded anew, version 7" in text
    assert "sampled: " not in text.replace("not sampled: ", "")
    assert "in 2 of 2 turns the stream's ids aren't those that were sampled" in text
    said(capsys, "show", NAME, "anew", "--html", "anew.html")
    page = Path("anew.html").read_text()
    assert page.count('<b class="anew">encoded anew</b>') == 2
    assert page.count("encoded anew from") == 2
    kept = said(capsys, "show", NAME, "kept")
    assert f"sampled: {sampled} ids with loss, mean log-probability -6.000" in kept
    assert "anew" not in kept
    assert "aren't those" not in kept
    damaged = " ".join(said(capsys, "show", NAME, "other").split())
    assert "turn 0: not as sampled, version 7" in damaged
    assert f"not sampled: {sampled} ids, in place of {sampled} sampled" in damaged
    assert "anew" not in damaged


def test_a_list_says_that_its_stitcher_is_a_baseline(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "stitched by" not in said(capsys, "list", NAME)
    baseline = ("Campaign.stitcher = @RetokenizingStitcher()", "Campaign.router = @FreeRouting()")
    (run / "config.gin").write_text(dump(load("experiments/quickstart.gin", set=baseline).root))
    told = " ".join(said(capsys, "list", NAME).split())
    assert "stitched by RetokenizingStitcher, so that its ids aren't always those that were sampled" in told
    (run / "config.gin").write_text("nonsense")
    assert main(["trajectory", "list", NAME]) == 0, "a list goes without"
    out, err = capsys.readouterr()
    assert "train-12-0" in out
    assert "note: whether the run's stitcher is a baseline isn't known: " in err


def test_a_restart_says_why(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with TrialWriter(batch_path(run, "train", 1), {}) as writer:
        writer.add(by_bytes("again", TokenStitcher()))
    assert "turn 1: restart (announced by the harness), version 7" in said(capsys, "show", NAME, "again")
    said(capsys, "show", NAME, "again", "--html", "again.html")
    page = Path("again.html").read_text()
    assert '<b class="restart">restart (announced by the harness)</b>' in page
    legend = page.partition('<div class="legend">')[2].partition("</div>")[0]
    assert '<b class="retokenized">1</b> boundary not exact' in legend
    assert '<b class="restart">2</b> with a gap: a new trajectory begins' in legend
    assert "nav a.restart, .legend .restart { margin-left" in page, "the same gap"


def test_a_trial_is_shown_turn_by_turn(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, "show", NAME, "train-12-0")
    head = dict(line.split(maxsplit=1) for line in text.partition("\n\n")[0].splitlines())
    assert head["trial"].startswith(f"train-12-0, of {NAME}, train-12")
    assert (head["task"].strip(), head["reward"].strip(), head["resolved"].strip()) == ("sort-3", "0.25", "yes")
    assert (head["turns"].strip(), head["boundaries"].strip()) == ("2", "1 exact")
    assert head["routing"].strip() == "3 rows captured again, 66.67 % equal"
    assert head["substituted"].strip() == "rows  1: 1"
    sampled = len(bundled().encode("done"))
    first, second = text.split("\nturn ")[1:]
    assert first.startswith("0: version 7, temperature 1, ended by its stop id\nrouting: 1 row substituted\nprompt: ")
    assert "  sort the lines of a file\n" in first
    assert second.startswith(
        "1: exact, version 7, temperature 1, ended by its stop id\nrouting: 3 rows captured again, 66.67 % equal\n"
    )
    assert ", 1 placeholder id among them\n" in second
    assert "\n  ⟦^[⟧[31mred^G" in second, "marked without colours too"
    mean = np.linspace(-3, -0.01, sampled).mean()
    assert f"sampled: {sampled} ids with loss, mean log-probability {mean:.3f}\n  done" in second
    assert f"least likely: {json.dumps(bundled().decode(bundled().encode('done')[:1]))} {np.exp(-3):.2g}" in second
    assert "\nexperts most of them went through:\n  layer 0: 1 (100 %), 4 (100 %)" in first
    assert "experts most" not in second, "its only id is the last one of its sample, which went through none"
    assert head["experts"] == "2 a token in each of 1 layers, as the sampler chose them"


def test_the_legend_is_shown_where_there_are_colours(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "sampled tokens by probability" not in said(capsys, "show", NAME, "train-12-0")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    assert "sampled tokens by probability" in said(capsys, "show", NAME, "train-12-0")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "sampled tokens by probability" not in said(capsys, "show", NAME, "train-12-0")


def test_rows_of_several_trajectories_are_told_by_trajectory() -> None:
    from t1x.cli.trajectory_wording import facts
    from t1x.trajectory.shown import shown

    one = made("a", TWO).trajectories[0]
    streams = (one, replace(one, substituted_rows=()), replace(one, substituted_rows=tuple(range(3, 13))))
    told = dict(facts(shown(replace(made("a", TWO), trajectories=streams), bundled()), "train-1"))
    assert told["substituted rows"] == "11: 1 in trajectory 0; 3, 4, 5, 6, 7, 8, 9, 10, … in trajectory 2"


def test_shades_follow_the_probability(run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from rich.console import Console

    from t1x.cli.trajectory_text import STYLES, trial_text
    from t1x.trajectory.shown import shown

    console = Console(record=True, width=200)
    trial = made("a", [("x", "e" * 30)])
    group = trial_text(shown(trial, bundled()), "train-1", everything=True)
    spans = [span for part in group.renderables[2].renderables for span in getattr(getattr(part, "renderable", None), "spans", [])]
    probabilities = np.exp(trial.turns[0].completion.logprobs)
    styles = [STYLES[0 if p >= 0.9 else 1 if p >= 0.6 else 2 if p >= 0.3 else 3 if p >= 0.1 else 4] for p in probabilities]
    assert [span.style for span in spans] == styles
    assert console.width == 200


def test_what_a_program_printed_has_no_effect_in_the_terminal(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, "show", NAME, "train-12-0", "--all")
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", text)
    assert "⟦^[⟧[31mred^G </pre><script>" in " ".join(text.split())
    assert "[bold]b[/bold]" in text
    assert "<U+202E>back" in text


def test_long_trials_are_cut_to_an_excerpt(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    short, whole = said(capsys, "show", NAME, "train-12-2"), said(capsys, "show", NAME, "train-12-2", "--all")
    assert "… 20 turns left out (--all shows them)" in short
    assert "ids left out" in short
    assert "left out" not in whole
    assert len(re.findall(r"^turn \d+:", short, re.M)) == 10
    assert len(re.findall(r"^turn \d+:", whole, re.M)) == 30
    assert len(short) < 15_000 < 90_000 < len(whole)


def test_an_invalid_trial_is_shown(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, "show", NAME, "train-12-1")
    assert "engine_error" in text
    assert "what its turns captured, since nothing was made of it to train on" in " ".join(text.split())
    assert len(re.findall(r"sampled: \d+ ids captured", text)) == 2


def test_captures_and_streams_that_can_not_be_divided_do_not_contradict_each_other(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = made("a", TWO)
    mask = np.arange(len(whole.trajectories[0].loss_mask)) > 2
    stream = replace(whole.trajectories[0], loss_mask=mask, logprobs=np.where(mask, np.float32(-2), np.float32(0)))
    with TrialWriter(batch_path(run, "train", 1), {}) as writer:
        writer.add(replace(whole, trajectories=(stream,)))
    text = said(capsys, "show", NAME, "a")
    assert f"{mask.sum()} of them with loss" in text
    assert "-2.000 nats a token on average, least -2.000, of the trajectories" in " ".join(text.split())
    assert "ids captured" in text
    assert "without loss" not in text


class Page(HTMLParser):
    """What a browser makes of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: dict[str, int] = {}
        self.attributes: list[tuple[str, str | None]] = []
        self.open: list[str] = []
        self.blocks: list[str] = []
        self.data: list[dict[str, str]] = []
        """Of each block: what the script reads of its tokens."""
        self.tokens: list[list[dict[str, str]]] = []
        """Of each block, the attributes of its tokens."""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] = self.tags.get(tag, 0) + 1
        self.attributes += attrs
        if tag == "pre":
            self.blocks.append("")
            self.data.append({name: value or "" for name, value in attrs})
            self.tokens.append([])
        if tag == "i" and "pre" in self.open:
            self.tokens[-1].append({name: value or "" for name, value in attrs})
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "pre" in self.open:
            self.blocks[-1] += data

    def numbers(self, name: str) -> list[str]:
        """Of all tokens in order; empty for those that have none."""
        found: list[str] = []
        for data, tokens in zip(self.data, self.tokens, strict=True):
            found += data[f"data-{name}"].split(" ") if f"data-{name}" in data else [""] * len(tokens)
        return found

    def experts(self) -> list[list[list[int]]]:
        """[layers][k] of all tokens that have some, in order."""
        found = []
        for data in self.data:
            layers, k, size = map(int, data.get("data-shape", "1 1 1").split())
            raw = np.frombuffer(base64.b64decode(data.get("data-experts", "")), {1: "<u1", 2: "<u2"}[size])
            found += raw.reshape(-1, layers, k).tolist()
        return found


def test_the_page_is_whole_and_harmless(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "show", NAME, "train-12-0", "--html", "trial.html") == "trial.html written\n"
    text = Path("trial.html").read_text(encoding="utf-8")
    page = Page(text)
    assert page.open == []
    assert page.tags["script"] == 1, "its own"
    tokens = made("a", TWO).trajectories[0].token_ids
    assert sum(map(len, page.tokens)) == len(tokens)
    assert page.tags["i"] == len(tokens) + 7, "a token each, and the legend's"
    assert page.blocks[0] == "sort the lines of a file"
    assert page.blocks[2] == "^[[31mred^G </pre><script>alert('x')</script> [bold]b[/bold] <U+202E>back & \"quoted\""
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", text)
    allowed = "lang charset http-equiv content name class title open id href tabindex aria-label role hidden"
    data = "data-ids data-logprobs data-equal data-shape data-experts data-name"
    assert {name for name, _ in page.attributes} <= {*allowed.split(), *data.split()}
    assert all(value == f"#t{number}" for number, value in enumerate(value for name, value in page.attributes if name == "href"))
    assert not re.search(
        r"https?:|//|url\(|@import|src=", text.replace("default-src", "").replace("style-src", "").replace("script-src", "")
    )


def test_the_page_has_of_each_token_what_was_captured(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, "show", NAME, "train-12-0", "--html", "trial.html")
    page, stream = Page(Path("trial.html").read_text(encoding="utf-8")), made("a", TWO).trajectories[0]
    assert page.numbers("ids") == [str(each) for each in stream.token_ids]
    told = [f"{each:.4f}" if loss else "" for each, loss in zip(stream.logprobs, stream.loss_mask, strict=True)]
    assert page.numbers("logprobs") == told
    assert page.experts() == stream.routed_experts.tolist()
    marks = [token.get("class", "").split() for tokens in page.tokens for token in tokens]
    shades = [f"p{sum(math.exp(float(each)) < edge for edge in (0.9, 0.6, 0.3, 0.1))}" if each else "" for each in told]
    assert [next((mark for mark in each if mark.startswith("p")), "") for each in marks] == shades
    assert [index for index, each in enumerate(marks) if "r" in each] == list(stream.substituted_rows)
    first = len(bundled().encode(TWO[0][0])) + len(bundled().encode(TWO[0][1]))
    assert [index for index, each in enumerate(marks) if "h" in each] == [first], "its second turn has one placeholder id"
    equal = page.numbers("equal")
    assert {index: share for index, share in enumerate(equal) if share} == {first - 4: "50", first - 3: "100", first - 2: "100"}


@pytest.fixture
def long(run: Path) -> StoredTrial:
    """A trial of long prompts, in a batch of its own."""
    trial = made("long", [("a" * 3000, "b" * 400)] * 3)
    with TrialWriter(batch_path(run, "train", 13), {}) as writer:
        writer.add(trial)
    return trial


def test_turns_can_be_reached_by_keys_and_links(long: StoredTrial, capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, "show", NAME, "long", "--html", "trial.html")
    page = Page(Path("trial.html").read_text(encoding="utf-8"))
    links = [value for name, value in page.attributes if name == "href"]
    assert links == ["#t0", "#t1", "#t2"]
    assert [value for name, value in page.attributes if name == "id" and value != "tip"] == ["t0", "t1", "t2"]
    assert all(data["tabindex"] == "0" for data in page.data)


def test_a_page_of_many_tokens_is_cut(
    long: StoredTrial, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("t1x.cli.trajectory_page.MOST_TOKENS", 1000)
    said(capsys, "show", NAME, "long", "--html", "trial.html")
    text = Path("trial.html").read_text(encoding="utf-8")
    page, first = Page(text), long.turns[0].prompt_ids
    assert "<dt>long prompts</dt><dd>cut: a page has at most 1,000 tokens</dd>" in text
    assert f"… {len(first) - 600:,} ids left out …" in text
    assert text.count("ids left out") == 3
    assert [len(tokens) for tokens in page.tokens[:2]] == [400, 200]
    assert page.numbers("ids")[:600] == [str(each) for each in np.r_[first[:400], first[-200:]]]


def test_a_page_takes_little_for_a_token(long: StoredTrial, capsys: pytest.CaptureFixture[str]) -> None:
    texts = {}
    for trial in ("long", "train-12-0"):
        said(capsys, "show", NAME, trial, "--html", f"{trial}.html")
        texts[trial] = Path(f"{trial}.html").read_text(encoding="utf-8")
    letters = len("".join(Page(texts["long"]).blocks))
    assert len(texts["long"]) - letters - len(texts["train-12-0"]) < 25 * len(long.trajectories[0].token_ids)


def test_a_page_never_replaces_a_file(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("notes.html").write_text("mine")
    assert "notes.html exists; remove it or name another file" in said(
        capsys, "show", NAME, "train-12-0", "--html", "notes.html", code=2
    )
    assert Path("notes.html").read_text() == "mine"
    assert "--html a/b.html: there is no folder a; make it" in said(
        capsys, "show", NAME, "train-12-0", "--html", "a/b.html", code=2
    )


def test_what_alone_is_no_text_is_told_by_its_bytes(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with TrialWriter(batch_path(run, "train", 1), {}) as writer:
        writer.add(made("bytes", [("x", "日")]))
    assert said(capsys, "show", NAME, "bytes", "--html", "bytes.html")
    page = Page(Path("bytes.html").read_text(encoding="utf-8"))
    assert [token["data-name"] for token in page.tokens[1]] == [f"byte 0x{byte:02X}" for byte in "日".encode()]
    assert page.blocks[1] == "日"
    assert "least likely: byte 0xE6 0.05, " in said(capsys, "show", NAME, "bytes")


def test_a_page_of_too_many_experts_says_so(run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("t1x.cli.trajectory_page.MOST_EXPERTS", 10)
    said(capsys, "show", NAME, "train-12-0", "--html", "trial.html")
    text = Path("trial.html").read_text()
    assert "too many to be listed token by token" in text
    assert "data-experts" not in text
    assert "experts most of them went through</summary>layer 0: 1 (100 %), 4 (100 %)" in text


def test_what_is_not_there_is_told(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "did you mean 'train-12-0'?" in said(capsys, "show", NAME, "train-12-00", code=2)
    assert "has no trial 'nothing'; `t1x trajectory list" in said(capsys, "show", NAME, "nothing", code=2)
    assert "it has warmup-0, train-2, train-12" in said(capsys, "list", NAME, "--step", "3", code=2)
    assert "there is no run 'quack'" in said(capsys, "list", "quack", code=2)
    for file in (run / "trajectories").iterdir():
        file.unlink()
    assert "has kept no trials; StoredTrajectories says which are kept (every = 0: none)" in said(capsys, "list", NAME, code=2)


def test_one_id_in_several_batches_needs_a_step(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = said(capsys, "show", NAME, "demonstration-0", code=2)
    assert "several batches have a trial demonstration-0: warmup-0, train-2; --step chooses one" in wrong
    assert f"of {NAME}, train-2" in said(capsys, "show", NAME, "demonstration-0", "--step", "2")


def test_a_damaged_batch_is_passed_over_and_told(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = batch_path(run, "train", 2)
    file.write_bytes(file.read_bytes()[:-20])
    assert main(["trajectory", "show", NAME, "train-12-0"]) == 0
    out, err = capsys.readouterr()
    assert "turn 1: exact" in out
    assert re.search(r"note: .*train-2.parquet is damaged or cut off", err)
    assert "damaged" in said(capsys, "list", NAME, "--step", "2", code=2)


@pytest.fixture
def evaluated(run: Path) -> Path:
    """The run with trials of two suites' evaluations."""
    for purpose, step in (
        ("eval-held_out-greedy", None),
        ("eval-held_out-greedy", 12),
        ("eval-held_out-sampled", 12),
        ("eval-validation-greedy", 6),
    ):
        with TrialWriter(batch_path(run, purpose, step), {"run": NAME, "started": "1.0"}) as writer:
            writer.add(made(f"{purpose}-{step_name(step)}-0", TWO))
    return run


def test_trials_of_a_suite_are_listed(evaluated: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, "list", NAME, "--suite", "held_out")
    assert re.findall(r"^eval-[\w-]+-12-0 ", text, re.M) == ["eval-held_out-greedy-12-0 ", "eval-held_out-sampled-12-0 "]
    assert "eval-held_out-sampled-12, the newest evaluation: 1 trial, mean reward 0.250, " in text
    assert text.endswith(
        "kept: eval-held_out-greedy-untrained, eval-held_out-greedy-12, \neval-held_out-sampled-12\n"
        "kept evaluations, which --suite lists: validation\n"
    )
    for step in ("untrained", "eval-held_out-greedy-untrained"):
        found = said(capsys, "list", NAME, "--suite", "held_out", "--step", step)
        assert re.findall(r"^eval-[\w-]+-0 ", found, re.M) == ["eval-held_out-greedy-untrained-0 "]
    assert "kept evaluations, which --suite lists: held_out, validation" in said(capsys, "list", NAME)
    assert "eval-" not in said(capsys, "list", NAME, "--step", "12").partition("kept")[0]
    assert "has kept no evaluation of held_out at 6; it has eval-held_out-greedy-untrained, " in said(
        capsys, "list", NAME, "--suite", "held_out", "--step", "6", code=2
    )
    wrong = said(capsys, "list", NAME, "--suite", "heldout", code=2)
    assert "has kept no trials of a suite 'heldout'; did you mean 'held_out'?; it has held_out, validation" in wrong


def test_a_trial_of_an_evaluation_is_shown(evaluated: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for trial, words, file in (
        ("eval-held_out-sampled-12-0", (), "eval-held_out-sampled-12"),
        ("eval-held_out-greedy-12-0", ("--step", "12"), "eval-held_out-greedy-12"),
        ("eval-held_out-greedy-untrained-0", (), "eval-held_out-greedy-untrained"),
        ("eval-held_out-greedy-untrained-0", ("--suite", "held_out", "--step", "untrained"), "eval-held_out-greedy-untrained"),
    ):
        text = " ".join(said(capsys, "show", NAME, trial, *words).split())
        assert text.startswith(f"trial {trial}, of {NAME}, {file} task ")
    wrong = said(capsys, "show", NAME, "eval-held_out-greedy-12-1", code=2)
    assert "did you mean 'eval-held_out-greedy-12-0'?" in wrong
    assert "--suite NAME` shows those there are" in wrong


def test_the_untrained_policy_and_the_start_are_told_apart(evaluated: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with TrialWriter(batch_path(evaluated, "eval-held_out-greedy", 0), {}) as writer:
        writer.add(made("eval-held_out-greedy-0-0", TWO))
    for step in ("untrained", "0"):
        name = f"eval-held_out-greedy-{step}"
        for words in ((), ("--step", step)):
            assert f", {name} task " in " ".join(said(capsys, "show", NAME, f"{name}-0", *words).split())


def test_a_run_that_trained_nothing_says_what_it_has(evaluated: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for file in (evaluated / "trajectories").glob("[tw]*"):
        file.unlink()
    assert "a run that stopped before its first batch has none; of evaluations it has held_out, " in said(
        capsys, "list", NAME, code=2
    )


def test_strange_files_among_the_trials_are_told(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run / "trajectories" / "train-12 (copy)\x1b.parquet").write_bytes(batch_path(run, "train", 12).read_bytes())
    for words in (("list", NAME), ("show", NAME, "train-12-0")):
        assert main(["trajectory", *words]) == 0
        assert re.search(
            r"note: .*/trajectories/train-12 \(copy\)\^\[.parquet isn't named as a batch or an evaluation is, so",
            capsys.readouterr().err,
        )


def test_files_of_another_run_are_refused(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for file in (run / "trajectories").iterdir():
        file.unlink()
    with TrialWriter(batch_path(run, "train", 1), {"run": "another", "started": "2.0"}) as writer:
        writer.add(made("a", TWO))
    for words in (("list", NAME), ("show", NAME, "a")):
        assert "holds trials of other runs (train-1 of another); remove those from there" in said(capsys, *words, code=2)


def test_an_ending_that_no_trial_has_is_refused(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with TrialWriter(batch_path(run, "train", 13), {}) as writer:
        writer.add(replace(made("a", TWO), ended_by="boredom"))
    for words in (("list", NAME), ("show", NAME, "a")):
        wrong = said(capsys, *words, code=2)
        assert "row 0 (trial 'a') can't be read (it ended by 'boredom', but trials end by done, turn_limit, " in wrong
        assert "; a newer t1x may have written it)" in wrong


def test_a_policys_own_choice_is_compared(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import torch

    from t1x.model.checkpoint import save_pretrained

    root = load(run / "config.gin").root
    policy = root.model.build(0)
    save_pretrained(root.model.build(1), run / "checkpoints" / "step-12" / "policy")
    trial = made("train-1-0", TWO)
    ids = torch.from_numpy(trial.trajectories[0].token_ids.astype(np.int64))
    with torch.no_grad():
        own = policy.model(ids[None]).routed_experts[0, :-1].numpy().astype(np.uint8)
    own[: len(own) // 2] = (own[: len(own) // 2] + 1) % 100 + 100  # none of the policy's
    share = 100 * (1 - (len(own) // 2) / len(own))
    stream = replace(trial.trajectories[0], routed_experts=own)
    turns = [
        replace(
            turn,
            completion=replace(
                turn.completion, routing=own[: len(turn.prompt_ids) + len(turn.completion.ids) - 1], routing_start=0
            ),
        )
        for turn in trial.turns
    ]
    with TrialWriter(batch_path(run, "train", 1), {}) as writer:
        writer.add(replace(trial, turns=tuple(turns), trajectories=(stream,)))
    text = " ".join(said(capsys, "show", NAME, "train-1-0", "--policy", NAME).split())
    assert f"step-12 of {NAME} chooses " in text, "the newest, where the one that sampled it isn't kept"
    assert f"sampler's experts (sampled by version 7 of {NAME})" in text
    save_pretrained(policy, run / "checkpoints" / "step-7" / "policy")
    for wanted in (NAME, str(run / "checkpoints" / "step-7")):
        text = " ".join(said(capsys, "show", NAME, "train-1-0", "--policy", wanted).split())
        assert f"step-7 of {NAME} chooses {share:.4g} % of the sampler's experts" in text
        assert "sampled by version" not in text
    shutil.copy(batch_path(run, "train", 1), batch_path(run, "eval-held_out-greedy", None))
    untrained = " ".join(said(capsys, "show", NAME, "train-1-0", "--step", "untrained", "--policy", NAME).split())
    assert f"(sampled by the untrained policy of {NAME})" in untrained
    wrong = said(capsys, "show", NAME, "train-12-0", "--policy", str(run / "checkpoints" / "step-7"), code=2)
    assert "the trial's records have [layers, k] = [1, 2], but the policy in" in wrong


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ((), ("list",), ("show",)):
        assert main(["trajectory", *words, "--help"]) == 0
        assert "Examples:\n" in capsys.readouterr().out
