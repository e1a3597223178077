"""Harbor's reward files, read without believing more of them than they say."""

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t1x.grading.harbor import read_harbor

PASSED, FAILED = {"name": "a", "status": "passed"}, {"name": "b", "status": "failed"}


def ctrf(*tests):
    counts = {status: sum(test["status"] == status for test in tests) for status in ("passed", "failed")}
    return json.dumps({"results": {"summary": {"tests": len(tests), **counts}, "tests": tests}})


def read(folder, assertions=None, **files):
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_bytes(text.encode() if isinstance(text, str) else text)
    return read_harbor(folder, assertions)


@pytest.mark.parametrize(
    ("files", "outcome"),
    [
        ({"reward_txt": "1\n"}, True),
        ({"reward_txt": " 0.5 "}, False),
        ({"reward_txt": "2"}, True),
        ({"reward_txt": "-1"}, False),
        ({"reward_json": "1"}, True),
        ({"reward_json": "0.99"}, False),
        ({"reward_json": '{"reward": 1.0, "steps": 3}'}, True),
        ({"reward_json": '{"reward": 0}', "reward_txt": "1"}, False),
        ({"reward_json": "1", "reward_txt": "nonsense"}, True),
    ],
)
def test_the_reward_is_the_outcome_and_json_goes_before_text(tmp_path, files, outcome):
    report = read(tmp_path, **files)
    assert (report.outcome, report.resolved) == (outcome, outcome)
    assert (report.cause, report.assertions) == ("missing", ())  # of the assertions nothing is known


def test_a_reward_below_1_is_told_with_what_it_takes(tmp_path):
    assert read(tmp_path, reward_txt="0.5").detail.startswith(
        "reward.txt holds 0.5, and only 1 or more means that the task is solved; "
    )
    assert read(tmp_path, reward_json="0.25", ctrf_json=ctrf(PASSED)).detail.startswith("reward.json holds 0.25, and only 1")


@pytest.mark.parametrize(
    "files",
    [{"reward_txt": text} for text in ("", "nan", "inf", "-Infinity", "1e999", "one", "1 1", b"\xff", "1" + "0" * 70_000)]
    + [{"reward_json": text} for text in ("", "NaN", "Infinity", "1e999", "true", "null", '"1"', "[1]", "{}", "{", "[" * 9999)]
    + [{"reward_json": f'{{"reward": {text}}}'} for text in ("NaN", "true", '"1"', "null", "{}", "9" * 400)]
    + [{"reward_json": "garbage", "reward_txt": "1"}],
)
def test_what_is_no_number_is_no_reward(tmp_path, files):
    report = read(tmp_path, **files)
    assert (report.cause, report.outcome, report.terminal) == ("bad_reward", None, None)
    assert "reward" in report.detail


def test_no_reward_is_missing_whatever_the_assertions_say(tmp_path):
    report = read(tmp_path, ctrf_json=ctrf(PASSED))
    assert (report.cause, report.outcome) == ("missing", None)


@pytest.mark.parametrize("name", ["reward.json", "reward.txt"])
def test_only_a_regular_file_is_a_reward(tmp_path, name):
    (tmp_path / "elsewhere").write_text("1")
    for make in (lambda path: path.symlink_to(tmp_path / "elsewhere"), os.mkfifo, os.mkdir):
        make(tmp_path / name)
        assert read(tmp_path).cause == "bad_reward"
        (tmp_path / name).rmdir() if make is os.mkdir else (tmp_path / name).unlink()


def test_assertions_come_from_ctrf_where_it_is_sound(tmp_path):
    report = read(tmp_path, reward_txt="0", ctrf_json=ctrf(PASSED, FAILED))
    assert (report.cause, report.outcome, report.assertions) == (None, False, (("a", True), ("b", False)))
    broken = read(tmp_path, reward_txt="1", ctrf_json="{")
    assert (broken.cause, broken.outcome, broken.assertions) == ("truncated", True, ())
    other = read(tmp_path, assertions=3, ctrf_json=ctrf(PASSED, FAILED))
    assert (other.cause, other.outcome) == ("test_set_mismatch", True)


def test_a_full_reward_beside_a_failed_assertion_is_a_contradiction(tmp_path):
    report = read(tmp_path, reward_txt="1", ctrf_json=ctrf(PASSED, FAILED))
    assert (report.cause, report.outcome, report.terminal) == ("summary_mismatch", None, None)
    assert "1 of 2" in report.detail


@given(st.floats() | st.integers() | st.booleans() | st.none() | st.text() | st.lists(st.integers()))
def test_any_json_value_is_a_finite_reward_or_refused(tmp_path_factory, value):
    report = read(tmp_path_factory.mktemp("r"), reward_json=json.dumps({"reward": value}))
    number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e308
    if number:
        assert report.outcome == (value >= 1)
    assert report.outcome is None or isinstance(value, int | float)
