"""Waits until somebody listens at a port of this machine, at most 60 s: `wait_port.py PORT`."""

import socket
import sys
import time

deadline = time.monotonic() + 60
while True:
    try:
        socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=1).close()
        break
    except OSError as error:
        if time.monotonic() > deadline:
            sys.exit(str(error))
        time.sleep(0.05)
