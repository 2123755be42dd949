"""What is told of the process: frames and state for pages and recorders, made only while somebody looks."""
