"""How a model's routing records look."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Experts = npt.NDArray[np.uint8] | npt.NDArray[np.uint16]
"""[rows, layers, k]: the experts that each position's token went through, in the router's slot order."""


@dataclass(frozen=True, slots=True)
class RoutingLayout:
    """What a record of one model must be."""

    layers: int
    k: int
    """Experts that a token uses in a layer."""
    experts: int
    """Experts of a layer."""

    @property
    def dtype(self) -> np.dtype[np.uint8] | np.dtype[np.uint16]:
        """One byte an expert up to 256 of them, two beyond."""
        return np.dtype(np.uint8) if self.experts <= 256 else np.dtype(np.uint16)
