"""What an experiment needs and this machine lacks."""

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest

from t1x.config import Component, Root
from t1x.config.requirements import Lack, NotHere, folder, gpus, missing, package, program, require, variable, worker


class NeedKind(Component):
    """What needs things."""


class NeedsKey(NeedKind):
    """Needs a key."""

    def missing(self) -> list[str]:
        return variable("T1X_TEST_KEY", "a key")


class NeedsMore(NeedKind):
    """Needs a key and a worker, and holds another."""

    inner: NeedKind = NeedsKey()
    """Another."""

    def missing(self) -> list[str]:
        return [*variable("T1X_TEST_KEY", "a key"), *worker(self)]


class NeedRoot(Root):
    """A root with needs."""

    first: NeedKind
    """One."""
    others: tuple[NeedKind, ...] = ()
    """More."""


TREE = NeedRoot(first=NeedsKey(), others=(NeedsMore(),))


def test_a_package_is_known_by_its_distribution():
    assert package("pydantic") == []
    assert package("t1x-is-not-there") == ["package t1x-is-not-there (pip install t1x-is-not-there)"]
    assert package("t1x-is-not-there", ">=2") == ["package t1x-is-not-there (pip install 't1x-is-not-there>=2')"]


def test_a_package_of_another_version_is_missing():
    here = importlib.metadata.version("pydantic")
    assert package("pydantic", ">=2,<3") == []
    assert package("pydantic", f"=={here}") == []
    assert package("pydantic", ">=99") == [f"package pydantic>=99, {here} is here (pip install 'pydantic>=99')"]


@pytest.mark.parametrize(("listed", "count"), [("", 0), ("0", 1), ("1, 3", 2), ("0,-1,1", 1), ("GPU-a,GPU-b,GPU-c", 3)])
def test_gpus_are_those_that_the_process_may_use(monkeypatch, listed, count):
    names = ["null", "nvidia0", "nvidia1", "nvidia2", "nvidia3", "nvidiactl", "nvidia-uvm"]
    monkeypatch.setattr(os, "listdir", lambda path: names if path == "/dev" else [])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert gpus(4) == []
    assert gpus(64) == ["64 GPUs, 4 are here"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", listed)
    assert gpus(count) == []
    assert gpus(count + 1)[0].startswith(f"{count + 1} GPU")


def test_a_machine_without_devices_has_none_whatever_is_visible(monkeypatch):
    monkeypatch.setattr(os, "listdir", lambda path: ["null"])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    assert gpus(1) == ["1 GPU, 0 are here"]
    assert gpus(0) == []


def test_variables_folders_programs(monkeypatch, tmp_path):
    monkeypatch.delenv("T1X_TEST_KEY", raising=False)
    assert variable("T1X_TEST_KEY", "a key") == ["environment variable T1X_TEST_KEY (a key)"]
    monkeypatch.setenv("T1X_TEST_KEY", "")
    assert variable("T1X_TEST_KEY", "a key") != []
    monkeypatch.setenv("T1X_TEST_KEY", "x")
    assert variable("T1X_TEST_KEY", "a key") == []
    assert folder(tmp_path, "tasks") == []
    assert folder(Path("nowhere"), "tasks") == ["folder nowhere (tasks)"]
    assert program("bash", "install it") == program(sys.executable, "install it") == []
    assert program("t1x-is-not-there", "install it") == ["program t1x-is-not-there (install it)"]


def test_each_thing_is_missing_once_with_all_that_need_it(monkeypatch):
    monkeypatch.delenv("T1X_TEST_KEY", raising=False)
    key, more = missing(TREE)
    assert key == Lack(
        "environment variable T1X_TEST_KEY (a key)",
        (("NeedRoot.first", "NeedsKey"), ("NeedRoot.others[0]", "NeedsMore"), ("NeedRoot.others[0].inner", "NeedsKey")),
    )
    assert more == Lack("worker of NeedsMore: not built yet", (("NeedRoot.others[0]", "NeedsMore"),))


def test_what_is_missing_is_told_by_component(monkeypatch):
    monkeypatch.delenv("T1X_TEST_KEY", raising=False)
    with pytest.raises(NotHere) as refused:
        require(TREE)
    assert str(refused.value).splitlines() == [
        "2 things that this experiment needs are missing here",
        "  NeedRoot.first: NeedsKey",
        "    environment variable T1X_TEST_KEY (a key), also for NeedRoot.others[0], NeedRoot.others[0].inner",
        "  NeedRoot.others[0]: NeedsMore",
        "    worker of NeedsMore: not built yet",
        "`--site laptop` runs the same experiment small",
    ]
    assert not isinstance(refused.value, ValueError), "it is no mistake of the user's"


def test_the_laptop_is_no_advice_on_the_laptop():
    with pytest.raises(NotHere) as refused:
        require(NeedRoot(first=NeedsMore(), site="laptop"))
    assert "--site" not in str(refused.value)


def test_nothing_is_said_where_nothing_is_missing(monkeypatch):
    monkeypatch.setenv("T1X_TEST_KEY", "x")
    root = NeedRoot(first=NeedsKey())
    assert missing(root) == []
    require(root)


def test_finding_out_imports_nothing_heavy():
    code = (
        "import sys, t1x.components; from t1x.config import Component\n"
        "from t1x.campaign.runtime import RayRuntime; from t1x.training.megatron import MegatronTrainer\n"
        "from t1x.engine.sglang import SGLangEngine; from t1x.sandbox.daytona import DaytonaSandbox\n"
        "parts = [RayRuntime(), MegatronTrainer(), SGLangEngine(), DaytonaSandbox()]\n"
        "assert all(part.missing() for part in parts)\n"
        "heavy = {'torch', 'ray', 'megatron', 'sglang', 'daytona', 'mlflow', 'transformers'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
