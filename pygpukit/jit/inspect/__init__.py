"""What a compiled kernel is made of: resources, occupancy, PTX, SASS, findings."""
