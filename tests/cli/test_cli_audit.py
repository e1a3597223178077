"""`t1x audit`, as a user gives it, on runs whose stored trials are written here."""

import dataclasses
import json
import re
from collections import Counter

import numpy as np
import pytest

from t1x.cli import main
from t1x.config import dump, load
from t1x.engine.protocol import Completion
from t1x.model.routing_layout import RoutingLayout
from t1x.text.chat import bundled
from t1x.trajectory.ending import EndedBy
from t1x.trajectory.records import Turn
from t1x.trajectory.routing import padding_rows
from t1x.trajectory.stitcher import TokenStitcher
from t1x.trajectory.storage_folder import batch_path
from t1x.trajectory.storage_writer import TrialWriter
from t1x.trajectory.stored import StoredTrial

LAYOUT = RoutingLayout(layers=2, k=2, experts=8)


def trial(name, answers=("ls", "cat a.txt"), ended_by="done"):
    """A trial whose history is kept in ids; an invalid one has turns only."""
    tokenizer, stitcher = bundled(), TokenStitcher().build(bundled(), LAYOUT)
    prompt, held, turns = tokenizer.first_prompt("look around"), 0, []
    for index, answer in enumerate(answers):
        ids = np.append(tokenizer.encode(answer), np.int32(tokenizer.stop_ids[0]))
        rows = padding_rows(LAYOUT, held, len(prompt) + len(ids) - 1 - held)
        logprobs = -0.5 - np.arange(len(ids), dtype=np.float32)
        turns.append(Turn(index, prompt, Completion(ids, logprobs, rows, held, "stop", 3, held), 1.0))
        stitcher.add(turns[-1])
        held = len(prompt) + len(ids) - 1
        prompt = np.concatenate([prompt, ids, tokenizer.glue("nothing\n")])
    trajectories = () if ended_by == "sandbox_error" else tuple(stitcher.finish())
    return StoredTrial(name, "task", EndedBy(ended_by), 1.0, True, tuple(turns), trajectories)


def broken(name, at=-2):
    """The same, but for one loss position."""
    whole = trial(name)
    stream = whole.trajectories[0]
    ids = stream.token_ids.copy()
    ids[np.flatnonzero(stream.loss_mask)[at]] = bundled().encode("\x1b")[0]
    return dataclasses.replace(whole, trajectories=(dataclasses.replace(stream, token_ids=ids),))


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Makes runs/quick-1a-0 with these trials by (purpose, step)."""
    monkeypatch.chdir(tmp_path)

    def make(batches, *settings, routing=True):
        folder = tmp_path / "runs" / "quick-1a-0"
        folder.mkdir(parents=True)
        record = {"name": "quick", "kind": "Campaign", "run_digest": "d", "study_digest": "s", "seed": 0, "site": "laptop"}
        (folder / "run.json").write_text(json.dumps({**record, "experiment": "", "status": "finished", "steps": 4, "started": 1.0}))
        (folder / "config.gin").write_text(dump(load("experiments/quickstart.gin", site="laptop", set=settings).root))
        for (purpose, step), trials in batches.items():
            with TrialWriter(batch_path(folder, purpose, step), {}, routing) as writer:
                for each in trials:
                    writer.add(each)
        return folder

    return make


def lines(said):
    return [line.replace(" %", "%").split() or [""] for line in said.splitlines()]


def test_a_faithful_run_passes(write, capsys):
    write({("warmup", 0): [trial("a")], ("train", 1): [trial("b"), trial("c", ("pwd",)), trial("d", ended_by="sandbox_error")]})
    assert main(["audit", "quick-1a-0"]) == 0
    said = capsys.readouterr().out
    sampled = [sum(len(turn.completion.ids) for turn in trial("x", answers).turns) for answers in (("ls", "cat a.txt"), ("pwd",))]
    table = {line[0]: line[1:] for line in lines(said)}
    assert table["warmup-0"][:4] == ["1", f"{sampled[0]}", "100%", "100%"]
    assert table["train-1"][:5] == ["3", f"{sum(sampled)}", "100%", "100%", "1"]
    assert table["all"][:5] == ["4", f"{sampled[0] + sum(sampled)}", "100%", "100%", "2"]
    assert "0 encoded anew, 0 with a substituted row (0.0000 %; at most 0.003 % in the report)" in " ".join(said.split())
    assert "drift in the loss region (1 - own turn): 0.0000 %" in said
    assert [case in said for case in ("exact", "edge", "retokenized", "restart")] == [True, False, False, False], "none of 0"
    assert main(["audit", "quick-1a-0", "--step", "warmup-0"]) == 0
    said = capsys.readouterr().out
    assert ("warmup-0" in said, "train-1" in said) == (True, False)


def test_a_violation_is_shown_side_by_side_and_tells_by_the_exit_code(write, capsys):
    write({("train", 1): [trial("a")], ("train", 2): [broken("b")]})
    assert main(["audit", "quick-1a-0"]) == 1
    said = capsys.readouterr().out
    assert "1 loss positions, 0 routing rows of context and 0 cached rows aren't what was captured" in " ".join(said.split())
    assert "b, turn 1: token, 1 position of it" in said
    stream = broken("b").trajectories[0]
    at = int(np.flatnonzero(stream.loss_mask)[-2])
    sampled = int(trial("b").turns[1].completion.ids[-2])
    shown = next(line for line in said.splitlines() if line.startswith(f"> {at} ") or f"> {at} " in line)
    assert f"{stream.token_ids[at]}" in shown
    assert '"^["' in shown, "control characters are made visible"
    assert f"{sampled}" in shown
    assert json.dumps(bundled().decode(np.array([sampled]))) in shown
    assert main(["audit", "quick-1a-0", "--step", "1"]) == 0
    assert main(["audit", "quick-1a-0", "--step", "2", "--examples", "0"]) == 1
    assert "turn 1: token" not in capsys.readouterr().out


def test_a_baseline_stitcher_has_no_violations_to_answer_for(write, capsys):
    write({("train", 1): [broken("a")]}, "Campaign.stitcher = @RetokenizingStitcher()", "Campaign.router = @FreeRouting()")
    assert main(["audit", "quick-1a-0"]) == 0
    said = capsys.readouterr().out
    assert "RetokenizingStitcher is a baseline" in said
    assert "a, turn 1: token" in said


def test_all_of_it_fits_into_80_columns_and_no_name_is_cut(write, capsys, monkeypatch):
    from t1x.trajectory.audit import Audit
    from t1x.trajectory.records import Boundary

    monkeypatch.setenv("COLUMNS", "80")
    write({("warmup", 12): [trial("a")], ("train", 123): [broken("b")]})
    counts = {"boundaries": Counter(dict.fromkeys(Boundary, 1234)), "positions": 10**6, "loss_tokens": 10**6}
    every = Audit(own_turn_violations=1, context_differences=1, substituted_rows=2000, **counts)
    monkeypatch.setattr("t1x.campaign.run_audit.audit", lambda *_, **__: every)
    assert main(["audit", "quick-1a-0", "--examples", "0"]) == 1
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines()[1:])) <= 80, "but for the run's path, which is to be copied"
    table = {line[0]: line[1:] for line in (row.split() for row in said.splitlines())}
    assert table["train-123"] == ["1", "1000000", "99.9999", "%", "99.9999", "%", *["1234"] * 4]
    assert {"retokenized", "restart"} < set(table["batch"])
    above = "(0.2000 %; at most 0.003 % in the report, whose trials are long: there is at most one such row a boundary"
    assert above in " ".join(said.split())


def test_no_number_is_cut_beside_long_names(write, capsys, monkeypatch):
    from t1x.trajectory.audit import Audit
    from t1x.trajectory.records import Boundary

    monkeypatch.setenv("COLUMNS", "80")
    write({("eval-held_out-sampled", None): [trial("a")], ("eval-held_out-sampled", 1234): [trial("b")]})
    counts = {"boundaries": Counter(dict.fromkeys(Boundary, 123456)), "positions": 10**9, "loss_tokens": 10**9}
    every = Audit(own_turn_violations=148_438_000, context_differences=1, **counts)
    monkeypatch.setattr("t1x.campaign.run_audit.audit", lambda *_, **__: every)
    assert main(["audit", "quick-1a-0", "--suite", "held_out", "--examples", "0"]) == 1
    said = capsys.readouterr().out
    assert "…" not in said
    told = " ".join(said.split())
    for count in (10**9, 2 * 10**9):
        assert f" {count} 85.2 % 99.9999 % " in told, "what isn't all of them isn't told as 100 %"
    names = "".join(line[:12].strip() for line in said.splitlines()[3:])
    assert "eval-held_out-sampled-untrained" in names
    assert "eval-held_out-sampled-1234" in names
    assert {"trials", "tokens", "turn", "context", *Boundary} <= set(told.split())


def test_the_run_is_told_by_its_whole_path(write, capsys, tmp_path, monkeypatch):
    folder = write({("train", 1): [trial("a")]})
    monkeypatch.chdir(folder.parent)
    assert main(["audit", "quick", "--runs", "."]) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"audit of {folder.resolve()}"


def changed(at, **streams):
    """A trial, but for one position of some of its streams."""
    whole = trial("a")
    stream = whole.trajectories[0]
    arrays = {}
    for name, change in streams.items():
        arrays[name] = getattr(stream, name).copy()
        arrays[name][at - (name == "routed_experts")] = change
    return dataclasses.replace(whole, trajectories=(dataclasses.replace(stream, **arrays),))


def row_of(said, at):
    """What is told of a position, in words."""
    return next(line for line in said.splitlines() if re.match(rf"\s*(> )?{at} ", line)).replace(">", "").split()


@pytest.mark.parametrize("kind", ["log-probability", "version", "experts"])
def test_what_differs_beside_the_ids_stands_in_the_columns(write, capsys, kind):
    stream, turn = trial("a").trajectories[0], trial("a").turns[1]
    last = len(stream.token_ids) - 1
    if kind == "log-probability":
        one, sides = changed(last, logprobs=-9.25), ["-9.25", f"{turn.completion.logprobs[-1]:g}"]
        before = [f"{turn.completion.logprobs[-2]:g}"] * 2
    elif kind == "version":
        spans = tuple(dataclasses.replace(span, stop=min(span.stop, last)) for span in stream.versions)
        spans += (dataclasses.replace(spans[-1], start=last, stop=last + 1, version=8),)
        whole = trial("a")
        one = dataclasses.replace(whole, trajectories=(dataclasses.replace(stream, versions=spans),))
        sides, before = ["8", "3"], ["3", "3"]
    else:
        row = stream.routed_experts[last - 1].copy()
        row[1] = 7 - row[1]
        one, captured = changed(last, routed_experts=row), stream.routed_experts
        sides = [*map(str, row[1]), *map(str, captured[last - 1, 1])]
        before = [*map(str, captured[last - 2, 1])] * 2
    write({("train", 1): [one]})
    assert main(["audit", "quick"]) == 1
    said = capsys.readouterr().out
    assert f"a, turn 1: {'routing' if kind == 'experts' else kind}, 1 position of it" in said
    assert said.count(kind) >= 2, "the columns are named for it"
    assert row_of(said, last)[:2] == [f"{last}", f"{stream.token_ids[last]}"]
    assert row_of(said, last)[-len(sides) :] == sides
    assert row_of(said, last - 1)[-len(before) :] == before


def test_a_row_of_context_is_shown_beside_the_captured_one(write, capsys):
    stream = trial("a").trajectories[0]
    at = int(np.flatnonzero(stream.loss_mask)[len(trial("a").turns[0].completion.ids) - 1]) + 1  # behind the first answer
    assert not stream.loss_mask[at : at + 2].any()
    row = 7 - stream.routed_experts[at]
    write({("train", 1): [changed(at + 1, routed_experts=row)]})
    assert main(["audit", "quick"]) == 1
    said = capsys.readouterr().out
    assert "a, turn 1: row, 1 position of it" in said
    assert row_of(said, at)[-4:] == [*map(str, row[0]), *map(str, stream.routed_experts[at, 0])]


def test_a_wrong_row_of_a_model_without_experts_is_told(write, capsys):
    whole = trial("a")
    bare = [dataclasses.replace(turn.completion, routing=turn.completion.routing[:, :0, :0]) for turn in whole.turns]
    stream = whole.trajectories[0]
    stream = dataclasses.replace(stream, routed_experts=stream.routed_experts[:, :0, :0], substituted_rows=(1,))
    turns = tuple(dataclasses.replace(turn, completion=done) for turn, done in zip(whole.turns, bare, strict=True))
    write({("train", 1): [dataclasses.replace(whole, turns=turns, trajectories=(stream,))]})
    assert main(["audit", "quick"]) == 1
    assert "a, turn 0: row, 1 position of it" in capsys.readouterr().out


def test_a_cached_row_is_told_without_ids_that_are_not_its_own(write, capsys):
    whole = trial("a")
    done = whole.turns[1].completion
    start = done.routing_start - 2
    again = np.concatenate([whole.trajectories[0].routed_experts[start : start + 2], done.routing])
    again[0] = 7 - again[0]
    served = dataclasses.replace(done, routing=again, routing_start=start)
    turns = (whole.turns[0], dataclasses.replace(whole.turns[1], completion=served))
    write({("train", 1): [dataclasses.replace(whole, turns=turns)]})
    assert main(["audit", "quick"]) == 1
    said = capsys.readouterr().out
    assert "a, turn 1: cached row, 1 position of it" in said
    assert "engine's" not in said


def test_turns_whose_context_differs_at_one_place_are_one_example(write, capsys):
    whole = trial("a", ("ls", "pwd", "cat a.txt", "wc b"))
    stream = whole.trajectories[0]
    ids = stream.token_ids.copy()
    ids[1] = bundled().encode("\x1b")[0]
    write({("train", 1): [dataclasses.replace(whole, trajectories=(dataclasses.replace(stream, token_ids=ids),))]})
    main(["audit", "quick-1a-0"])
    said = capsys.readouterr().out
    sampled = int(stream.loss_mask.sum())
    assert f"a, turn 0: context, {sampled} positions of it and of 3 later turns" in said
    assert said.count(": context, ") == 1


def test_bytes_that_are_no_text_are_told_as_such(write, capsys):
    whole = trial("a")
    stream = whole.trajectories[0]
    ids = stream.token_ids.copy()
    ids[np.flatnonzero(stream.loss_mask)[-2]] = bundled().encode("日")[0]
    write({("train", 1): [dataclasses.replace(whole, trajectories=(dataclasses.replace(stream, token_ids=ids),))]})
    main(["audit", "quick-1a-0"])
    assert "byte 0xE6" in capsys.readouterr().out


def test_a_turn_that_no_stream_holds_is_shown_by_the_engines_positions(write, capsys):
    whole = trial("a")
    stream = trial("a", ("ls",)).trajectories[0]
    write({("train", 1): [dataclasses.replace(whole, trajectories=(stream,))]})
    assert main(["audit", "quick-1a-0"]) == 1
    said = capsys.readouterr().out
    assert "a, turn 1: missing" in said
    first = len(whole.turns[1].prompt_ids)
    assert f"> {first} " in said
    assert not re.search(r"^ *(> )?-\d", said, re.M), "no position is below 0"


def test_what_is_wrong_of_a_turn_as_a_whole_shows_no_ids(write, capsys):
    whole = trial("a")
    stream = dataclasses.replace(whole.trajectories[0], temperature=0.5)
    write({("train", 1): [dataclasses.replace(whole, trajectories=(stream,))]})
    assert main(["audit", "quick-1a-0"]) == 1
    said = capsys.readouterr().out
    assert "a, turn 0: temperature" in said
    assert "engine's" not in said


def test_routing_that_was_not_kept_is_said(write, capsys):
    write({("train", 1): [trial("a")]}, routing=False)
    assert main(["audit", "quick-1a-0"]) == 0
    assert "without routing, which wasn't kept: train-1" in capsys.readouterr().out


def test_trials_of_evaluations_are_audited_by_their_suite_alone(write, capsys):
    write(
        {
            ("train", 1): [trial("a")],
            ("eval-held_out-greedy", None): [broken("b")],
            ("eval-held_out-greedy", 4): [trial("c")],
            ("eval-validation-greedy", 4): [trial("d")],
        }
    )
    assert main(["audit", "quick"]) == 0
    said = capsys.readouterr().out
    assert "aren't in it, as nothing is trained on them; --suite: held_out, validation" in " ".join(said.split())
    assert "eval-" not in said
    assert main(["audit", "quick", "--suite", "held_out"]) == 1
    said = capsys.readouterr().out
    assert [line[0] for line in lines(said)][3:6] == ["eval-held_out-greedy-untrained", "eval-held_out-greedy-4", "all"]
    assert "b, turn 1: token, 1 position of it" in said
    assert "aren't in it" not in said
    assert main(["audit", "quick", "--suite", "held_out", "--step", "4"]) == 0


def test_an_ending_that_no_trial_has_is_refused(write, capsys):
    write({("train", 1): [dataclasses.replace(trial("a"), ended_by="boredom")]})
    assert main(["audit", "quick"]) == 2
    said = capsys.readouterr().err
    assert "train-1.parquet is damaged or cut off: row 0 (trial 'a') can't be read (it ended by 'boredom', but " in said


def test_strange_files_are_told_and_those_of_another_run_refused(write, capsys):
    folder = write({("train", 1): [trial("a")]})
    (folder / "trajectories" / "notes.txt").touch()
    assert main(["audit", "quick"]) == 0
    assert "trajectories/notes.txt isn't named as a batch or an evaluation is, so it isn't read" in capsys.readouterr().err
    with TrialWriter(batch_path(folder, "train", 2), {"run": "another", "started": "2.0"}) as writer:
        writer.add(trial("b"))
    assert main(["audit", "quick"]) == 2
    assert "holds trials of other runs (train-2 of another); remove those from there" in capsys.readouterr().err


def test_what_can_not_be_audited_is_told(write, capsys):
    folder = write({("train", 2): [trial("a")]})
    assert main(["audit", "slow"]) == 2
    assert "there is no run 'slow' in runs" in capsys.readouterr().err
    assert main(["audit", "quick", "--step", "1"]) == 2
    assert "has kept no batch train-1; it has train-2" in capsys.readouterr().err
    batch = batch_path(folder, "train", 2)
    batch.write_bytes(batch.read_bytes()[:-50])
    assert main(["audit", "quick"]) == 2
    assert "train-2.parquet" in capsys.readouterr().err
    batch.unlink()
    assert main(["audit", "quick"]) == 2
    assert "has kept no trials; StoredTrajectories says which are kept (every = 0: none)" in capsys.readouterr().err
