"""Numbers as a reader is told them."""

import math


def duration(seconds: float) -> str:
    """`42 s`, `3 min`, `2.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def with_error(mean: float, error: float, sign: str = "") -> str:
    """`0.562 ± 0.025`, `0.00652 ± 0.00031`, `3.98e-07 ± 1.20e-08`, or `0.500 ± ?` for an error that is NaN: two digits of the error
    and three decimals at least. With the sign `+` a mean above 0 has one too."""
    smallest = max(error, abs(mean) / 1e4) if error > 0 else abs(mean) / 10
    decimals = max(3, 1 - math.floor(math.log10(smallest))) if smallest else 3
    form = f".{decimals}f" if decimals <= 6 else ".2e"
    return f"{mean:{sign}{form}} ± {'?' if math.isnan(error) else f'{error:{form}}'}"


def size(number: float) -> str:
    """Bytes as `312 B`, `4.1 kB`, `12 MB`, `1.3 GB`; a kB is 1000 bytes."""
    for unit in ("B", "kB", "MB", "GB"):
        if number < 999.5:
            return f"{number:.{0 if number >= 10 or unit == 'B' else 1}f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"
