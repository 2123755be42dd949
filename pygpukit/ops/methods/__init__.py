"""The methods of arrays that are operations: what GPUArray inherits."""
