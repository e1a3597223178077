"""Numbers as a reader is told them."""

import math


def duration(seconds: float) -> str:
    """`42 s`, `3 min`, `2.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def with_error(mean: float, error: float, sign: str = "") -> str:
    """`0.562 ± 0.025`, or `0.500 ± ?` for an error that is NaN. With the sign `+` a mean above 0 has one too."""
    return f"{mean:{sign}.3f} ± {'?' if math.isnan(error) else f'{error:.3f}'}"


def size(number: float) -> str:
    """Bytes as `312 B`, `4.1 kB`, `12 MB`, `1.3 GB`; a kB is 1000 bytes."""
    for unit in ("B", "kB", "MB", "GB"):
        if number < 999.5:
            return f"{number:.{0 if number >= 10 or unit == 'B' else 1}f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"
