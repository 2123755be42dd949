"""Arrays: GPUArray, how arrays are made, shown and handed to other libraries."""
