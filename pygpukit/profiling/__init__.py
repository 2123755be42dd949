"""The cost of work: times of a launch, and the limits of the device that it is held against."""
