"""Lets this interpreter use the compiled modules that lie beside its sources where the clock stands still.

In a deterministic sandbox no file seems younger than that clock: no compiled module would fit its source, and all of them would be
compiled again, for seconds. A module's size is still compared.
"""

import os
import sys
import time

if os.stat(__file__).st_mtime >= time.time():
    loader = sys.modules["_frozen_importlib_external"]
    validate = loader._validate_timestamp_pyc

    def validate_size(data: bytes, mtime: int, *rest: object) -> None:
        validate(data, int.from_bytes(data[8:12], "little"), *rest)

    loader._validate_timestamp_pyc = validate_size  # type: ignore[attr-defined]
