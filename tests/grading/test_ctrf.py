"""The CTRF parser: every way a report can be unusable has its cause, and none is a pass."""

import json
import os
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t1x.grading.ctrf import parse_ctrf, read_ctrf

STATUSES = ("passed", "failed", "skipped", "pending", "other")


def document(tests, **summary):
    counts = {"tests": len(tests), **{status: sum(s == status for _, s in tests) for status in STATUSES}, "start": 1, "stop": 2}
    entries = [{"name": name, "status": status, "duration": 1} for name, status in tests]
    return {"results": {"tool": {"name": "pytest"}, "summary": {**counts, **summary}, "tests": entries}}


GOOD = document([("a", "passed"), ("b", "failed")])


def changed(change):
    copy = json.loads(json.dumps(GOOD))
    change(copy)
    return json.dumps(copy)


CASES = {
    "nothing": ("", "empty"),
    "white space": (" \n\t", "empty"),
    "cut in a string": ('{"results": {"tool": {"na', "truncated"),
    "cut after a colon": ('{"results":', "truncated"),
    "cut in a word": ('{"results": tr', "truncated"),
    "cut at the last brace": (json.dumps(GOOD)[:-1], "truncated"),
    "not JSON": ("all tests passed!", "unparsable"),
    "two documents": (json.dumps(GOOD) * 2, "unparsable"),
    "not UTF-8": (b'{"a": "\xff"}', "unparsable"),
    "NaN": ('{"results": NaN}', "unparsable"),
    "a key twice": ('{"results": 1, "results": 2}', "unparsable"),
    "endless nesting": ("[" * 100_000, "unparsable"),
    "a huge number": ("9" * 5000, "unparsable"),
    "a list": ("[]", "bad_schema"),
    "null": ("null", "bad_schema"),
    "no results": ('{"tests": []}', "bad_schema"),
    "no summary": (changed(lambda d: d["results"].pop("summary")), "bad_schema"),
    "no tests": (changed(lambda d: d["results"].pop("tests")), "bad_schema"),
    "no count of passes": (changed(lambda d: d["results"]["summary"].pop("passed")), "bad_schema"),
    "a count as text": (changed(lambda d: d["results"]["summary"].update(passed="1")), "bad_schema"),
    "a count as truth": (changed(lambda d: d["results"]["summary"].update(passed=True)), "bad_schema"),
    "a count as fraction": (changed(lambda d: d["results"]["summary"].update(passed=1.0)), "bad_schema"),
    "tests as object": (changed(lambda d: d["results"].update(tests={"a": "passed"})), "bad_schema"),
    "a test as text": (changed(lambda d: d["results"]["tests"].append("c")), "bad_schema"),
    "a test without status": (changed(lambda d: d["results"]["tests"][0].pop("status")), "bad_schema"),
    "a test without name": (changed(lambda d: d["results"]["tests"][0].pop("name")), "bad_schema"),
    "an unknown status": (changed(lambda d: d["results"]["tests"][0].update(status="PASSED")), "bad_schema"),
    "a name twice": (json.dumps(document([("a", "passed"), ("a", "passed")])), "duplicate"),
    "too many passes": (changed(lambda d: d["results"]["summary"].update(passed=2)), "summary_mismatch"),
    "too few tests": (changed(lambda d: d["results"]["summary"].update(tests=1)), "summary_mismatch"),
    "a skip that isn't listed": (changed(lambda d: d["results"]["summary"].update(skipped=1)), "summary_mismatch"),
    "one assertion too many": (json.dumps(document([("a", "passed"), ("b", "passed"), ("c", "passed")])), "test_set_mismatch"),
    "one assertion missing": (json.dumps(document([("a", "passed")])), "test_set_mismatch"),
    "no assertion": (json.dumps(document([])), "test_set_mismatch"),
}


@pytest.mark.parametrize(("content", "cause"), CASES.values(), ids=CASES.keys())
def test_each_unusable_report_has_its_cause(content, cause):
    report = parse_ctrf(content.encode() if isinstance(content, str) else content, 2)
    assert report.cause == cause
    assert report.assertions == ()
    assert report.detail
    assert not report.resolved


def test_a_sound_report():
    report = parse_ctrf(json.dumps(GOOD).encode(), 2)
    assert report.cause is None
    assert report.assertions == (("a", True), ("b", False))
    assert (report.passed, report.total, report.resolved) == (1, 2, False)
    assert parse_ctrf(json.dumps(document([("a", "passed")])).encode(), None).resolved


def test_only_passed_passes():
    report = parse_ctrf(json.dumps(document([(status, status) for status in STATUSES])).encode(), None)
    assert dict(report.assertions) == {status: status == "passed" for status in STATUSES}


def test_an_empty_report_is_never_resolved_even_where_the_pool_does_not_know_better():
    assert parse_ctrf(json.dumps(document([])).encode(), None).cause == "test_set_mismatch"


tests_of_a_task = st.dictionaries(st.text(min_size=1), st.sampled_from(STATUSES), min_size=1, max_size=8)


@given(tests_of_a_task, st.sampled_from([None, 1]), st.booleans())
def test_valid_reports_round_trip(tests, indent, known):
    content = json.dumps(document(list(tests.items())), indent=indent).encode()
    report = parse_ctrf(content, len(tests) if known else None)
    assert report.cause is None
    assert report.assertions == tuple((name, status == "passed") for name, status in tests.items())


@given(tests_of_a_task, st.data(), st.booleans())
def test_a_report_cut_anywhere_is_never_read(tests, data, ascii_only):
    content = json.dumps(document(list(tests.items())), ensure_ascii=ascii_only).encode("utf-8", "replace")
    cut = data.draw(st.integers(0, len(content) - 1))
    report = parse_ctrf(content[:cut], None)
    assert report.cause == ("truncated" if cut else "empty")
    assert not report.resolved


@given(st.binary(max_size=200) | st.text(alphabet='{}[]":,0123456789truefalsn \\', max_size=200).map(str.encode))
def test_garbage_is_never_read_as_a_pass(content):
    report = parse_ctrf(content, None)
    assert report.cause is not None


def test_what_is_no_regular_file_is_never_opened(tmp_path):
    target = tmp_path / "target"
    target.write_text(json.dumps(document([("a", "passed")])))
    fifo, link, dangling, folder, listening = (tmp_path / name for name in ("fifo", "link", "dangling", "folder", "socket"))
    os.mkfifo(fifo)
    link.symlink_to(target)
    dangling.symlink_to(tmp_path / "none")
    folder.mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(listening))
        kinds = {fifo: "FIFO", link: "symbolic link", dangling: "symbolic link", folder: "folder", listening: "socket"}
        for path, kind in kinds.items():
            report = read_ctrf(path, None)
            assert (report.cause, kind in report.detail) == ("not_regular_file", True)
    assert read_ctrf(target, None).resolved
    assert read_ctrf(tmp_path / "none", None).cause == "missing"


def test_a_report_without_end_is_not_read(tmp_path):
    path = tmp_path / "ctrf.json"
    with open(path, "wb") as file:
        file.truncate(1 << 40)
    report = read_ctrf(path, None)
    assert report.cause == "too_large"
    assert str(1 << 40) in report.detail
