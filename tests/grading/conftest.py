import os
import shutil
import tempfile
import warnings
from pathlib import Path

import pytest


@pytest.fixture
def root():
    """A folder for sandboxes that an unprivileged user can reach."""
    folder = Path(tempfile.mkdtemp(prefix="t1x-test-"))
    folder.chmod(0o755)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ProcessSandbox warns
        yield folder
    assert os.listdir(folder) == [], "verification left something behind"
    shutil.rmtree(folder)
