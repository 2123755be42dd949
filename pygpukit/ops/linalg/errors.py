"""LinAlgError. It is NumPy's, too, so that this module is loaded when the error is asked for or raised."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pygpukit.core.errors import GPUError, ShapeError


class LinAlgError(GPUError, np.linalg.LinAlgError):
    """Matrices have no result: singular, not positive definite, not converged. np.linalg.LinAlgError catches it, too.

    Field: failed (the place of each of them in the stack; of a single matrix the empty tuple).
    """

    def __init__(self, message: str, failed: Sequence[tuple[int, ...]] = ()) -> None:
        super().__init__(message)
        self.failed = list(failed)


class MatrixShapeError(LinAlgError, ShapeError):
    """An array is no matrix, or its matrices are not square. NumPy's LinAlgError and a ShapeError."""
