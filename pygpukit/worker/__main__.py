"""Entry point of a worker process; started by pygpukit.worker.Worker, not by hand."""

import sys

from .child import main

if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("a worker is started by pygpukit.worker.Worker, which hands it a socket and its process id")
    sys.exit(main(sys.argv[1:]))
