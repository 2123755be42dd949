"""Reading CUDA C++: tokens, kernels, parameters and variables of a source. No compiler is asked."""
