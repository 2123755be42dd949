"""Arrays, data types, devices, streams, events and errors."""
