"""What a launch costs: times, counts, and the limits of the device."""
