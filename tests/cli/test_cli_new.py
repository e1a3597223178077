"""The experiments that `t1x new` writes load, run, and say what their fields are."""

import json
from pathlib import Path

import pytest
from open_folder import open_folder

from t1x.cli import main
from t1x.config import load

QWEN = {
    "model_type": "qwen3_moe",
    "architectures": ["Qwen3MoeForCausalLM"],
    "vocab_size": 1000,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "max_position_embeddings": 2048,
    "rope_theta": 1000000.0,
    "tie_word_embeddings": False,
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_loads_and_every_binding_has_a_comment(folder, capsys):
    assert main(["new", "mine.gin"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "mine.gin written. Next:",
        "  t1x show mine.gin",
        "  t1x run mine.gin --smoke",
        "  t1x run mine.gin",
    ]
    assert load("mine.gin", site="laptop").root.steps == 10
    bindings = [line for line in Path("mine.gin").read_text().splitlines() if " = " in line]
    assert len(bindings) > 20
    for line in bindings:
        assert line.partition("  # ")[2], line


def test_it_runs(capsys, monkeypatch):
    with open_folder() as folder:
        monkeypatch.chdir(folder)
        assert main(["new", "mine.gin"]) == 0
        sandbox = ["--set", f"BubblewrapSandbox.root = '{folder}'"]
        assert main(["run", "mine.gin", "--smoke", "--site", "laptop", *sandbox]) == 0, capsys.readouterr().err
        monkeypatch.chdir("/")


def test_from_an_experiment_is_that_experiment_until_something_is_changed(folder):
    assert main(["new", "mine.gin", "--from", "experiments/quickstart.gin"]) == 0
    text = Path("mine.gin").read_text()
    original = load("experiments/quickstart.gin", site="laptop").root
    assert load("mine.gin", site="laptop").root == original
    (line,) = [line for line in text.splitlines() if line.startswith("# Campaign.seed = 0")]
    assert "random streams" in line
    offered = [line for line in text.splitlines() if line.startswith("# Campaign.")]
    Path("all.gin").write_text("\n".join(text.splitlines() + [line.removeprefix("# ") for line in offered]))
    assert load("all.gin", site="laptop").root == original


@pytest.mark.parametrize("experiment", ["grpo_t1_15k", "eval_tb21"])
def test_from_other_experiments(folder, experiment):
    assert main(["new", "mine.gin", "--from", f"experiments/{experiment}.gin"]) == 0
    assert load("mine.gin", site="laptop").root == load(f"experiments/{experiment}.gin", site="laptop").root


def test_from_a_checkpoint(folder):
    (folder / "model").mkdir()
    (folder / "model" / "config.json").write_text(json.dumps(QWEN))
    assert main(["new", "mine.gin", "--checkpoint", "model"]) == 0
    root = load("mine.gin", site="laptop").root
    assert {name: getattr(root.model, name) for name in QWEN if name not in ("model_type", "architectures")} == {
        name: value for name, value in QWEN.items() if name not in ("model_type", "architectures")
    }
    assert (str(root.start.path), str(root.tokenizer.path), root.tokenizer.vocab_size) == ("model", "model", 1000)
    harness = root.harness
    assert (harness.context_tokens, harness.max_command_tokens, harness.observation_tokens) == (2048, 256, 512)


def test_from_a_checkpoint_of_a_small_model(folder):
    (folder / "model").mkdir()
    (folder / "model" / "config.json").write_text(json.dumps(QWEN | {"max_position_embeddings": 256}))
    assert main(["new", "mine.gin", "--checkpoint", "model"]) == 0
    harness = load("mine.gin", site="laptop").root.harness
    assert (harness.context_tokens, harness.max_command_tokens, harness.observation_tokens) == (256, 32, 64)


def test_what_is_there_is_kept(folder, capsys):
    Path("mine.gin").write_text("kept")
    assert main(["new", "mine.gin"]) == 2
    assert capsys.readouterr().err == "error: mine.gin is there already; choose another name\n"
    assert Path("mine.gin").read_text() == "kept"


def test_mistakes_write_nothing(folder, capsys):
    (folder / "model").mkdir()
    (folder / "model" / "config.json").write_text(json.dumps(QWEN | {"model_type": "llama"}))
    for arguments, message in (
        (["--checkpoint", "model"], "model_type 'llama' isn't supported"),
        (["--checkpoint", "nothing"], "nothing holds no readable model: there is no such folder"),
        (["--checkpoint", "."], ". holds no readable model: it has no config.json"),
        (["--checkpoint", "mo\ndel"], "'mo\\ndel' has a character that can't be printed"),
        (["--from", "experiments/quikstart.gin"], "did you mean 'experiments/quickstart.gin'?"),
        (["--from", "experiments/quickstart.gin", "--checkpoint", "model"], "exclude each other"),
        (["--from", "experiments/grids/reward.gin"], "describes a Grid; a new experiment is made from"),
    ):
        assert main(["new", "mine.gin", *arguments]) == 2
        assert message in capsys.readouterr().err
        assert not Path("mine.gin").exists()


def test_a_name_that_a_shell_would_split_is_quoted(folder, capsys):
    assert main(["new", "a b.gin"]) == 0
    assert "  t1x run 'a b.gin' --smoke" in capsys.readouterr().out.splitlines()
    assert "#   t1x run 'a b.gin'" in Path("a b.gin").read_text().splitlines()
    assert main(["new", "a\nb.gin"]) == 2
    assert capsys.readouterr().err == "error: 'a\\nb.gin' has a character that can't be printed; choose another name\n"
    assert not Path("a\nb.gin").exists()


def test_no_comment_ends_in_an_abbreviation(folder):
    (folder / "model").mkdir()
    (folder / "model" / "config.json").write_text(json.dumps(QWEN))
    assert main(["new", "mine.gin", "--checkpoint", "model"]) == 0
    comments = [line.rpartition("  # ")[2] for line in Path("mine.gin").read_text().splitlines() if "  # " in line]
    assert len(comments) > 20
    assert not [comment for comment in comments if comment.endswith(("e.g", "i.e", "e.g.", "i.e.", ","))]
