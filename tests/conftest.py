"""What all tests share: `--hypothesis-profile=soak` tries many more examples, `planted` only until one fails (`tests/planted`), and
no test's components reach another."""

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from open_folder import open_folder

from t1x.config import Component

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it, and all that tests start would too
settings.register_profile("soak", max_examples=2500, deadline=None, suppress_health_check=list(HealthCheck))
settings.register_profile("planted", derandomize=True, phases=[Phase.explicit, Phase.generate], deadline=None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files of whole runs go first: they take longest, and one of them would keep one process busy after the other has ended."""
    items.sort(key=lambda item: "e2e" not in item.path.parts)


@pytest.fixture(autouse=True)
def own_components() -> Iterator[None]:
    """What a test registers, itself or by importing a module, is gone after it."""
    modules = set(sys.modules)
    tables = [(table, set(table)) for table in (Component.registry, Component.kinds)]
    yield
    for table, before in tables:
        for name in set(table) - before:
            module = table[name].__module__
            if module.partition(".")[0] != "t1x":
                del table[name]
                if module not in modules:
                    sys.modules.pop(module, None)


@pytest.fixture
def sandboxes() -> Iterator[Path]:
    """A folder to make sandboxes in, empty again after the test."""
    with open_folder() as folder:
        yield folder
        assert list(folder.iterdir()) == [], "a sandbox left something behind"
