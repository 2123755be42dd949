"""Telemetry of the process: frames and state for pages and recorders, made only while there are subscribers."""
