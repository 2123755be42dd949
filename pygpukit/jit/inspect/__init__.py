"""Parts of a compiled kernel: resources, occupancy, PTX, SASS, findings."""
