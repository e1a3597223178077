"""A check holds for the sandbox that it was made in."""

from pathlib import Path

import pytest

from t1x.curation.conditions import check_settings
from t1x.sandbox.daytona import DaytonaSandbox
from t1x.sandbox.local import BubblewrapSandbox, ProcessSandbox
from t1x.tasks.manifest import Manifest, read_manifest, write_manifest

USUAL = BubblewrapSandbox()


@pytest.mark.parametrize(
    "other",
    [
        *({"memory": 512}, {"total_memory": 512}, {"processes": 100}, {"file_size": 100}, {"disk": 100}, {"files": 5000}),
        *({"output_limit": 5000}, {"setup_deadline": 5.0}, {"remote_deadline": 900.0}),
    ],
)
def test_other_limits_are_other_settings(other):
    assert check_settings(BubblewrapSandbox(**other), 3) != check_settings(USUAL, 3)


@pytest.mark.parametrize("other", [{"root": Path("/elsewhere")}, {"per_node": 4}, {"create_concurrency": 1}, {"create_burst": 1}])
def test_where_and_how_many_sandboxes_are_is_none(other):
    assert check_settings(BubblewrapSandbox(**other), 3) == check_settings(USUAL, 3)


@pytest.mark.parametrize("sandbox", [USUAL, ProcessSandbox(), DaytonaSandbox(image="debian", creates_per_second=1.0)])
def test_a_manifest_keeps_them(sandbox, tmp_path):
    settings = check_settings(sandbox, 2, 5.0)
    write_manifest(tmp_path / "m.json", Manifest(settings=settings, tasks={}))
    found = read_manifest(tmp_path / "m.json")
    assert found is not None
    assert found.settings == settings
    assert check_settings(sandbox, 2) != settings
