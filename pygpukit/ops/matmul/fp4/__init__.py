"""Products with matrices of fp4: NVFP4 and MXFP4."""
