"""Arrays of random numbers by Philox4x32-10: the kernel behind pygpukit.random."""
