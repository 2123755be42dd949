"""Linear algebra with NumPy's names, arguments and results; gp.linalg is the namespace of what the modules here have.

Matrices are the last two axes, the axes before them a stack, which broadcasts where there are two. float32 and
complex64 are computed in single precision, float64 and complex128 in double, integers and bool in double; float16 and
bfloat16 are refused, as NumPy refuses float16. Strided inputs are read in place. Raises ShapeError, DTypeError and
DeviceMismatchError before anything is launched. What has no result raises LinAlgError, for which the host waits for the
device; within unchecked() it does not wait, and the result is NaN. A matrix gives the same bits each time, and whatever
else is in the stack.

NumPy computes on the simulated device (on_host.py), kernels of our own where matrices are small (small.py), cuSOLVER
where they are large (cusolver.py): three modules with the same functions.
"""
