"""The sweep: every built-in kernel on the simulator in checked mode, on small shapes, beside a float64 reference."""
