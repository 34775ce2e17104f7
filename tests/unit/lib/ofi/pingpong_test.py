#!/usr/bin/env python3
"""libfabric's own fi_pingpong over the provider, an independent program: both kinds of
messages, with the bytes checked."""
import os
import shutil
import socket
import subprocess
import sys
import time

BOUND_S = 100


def free_port():
    """Returns a port that no socket has, and that the kernel gives to no client."""
    for tried in range(20000):
        port = 10000 + (os.getpid() * 64 + tried) % 20000
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return str(port)
            except OSError:
                pass
    raise RuntimeError("no port from 10000 to 29999 is free")


def run(kind, size):
    port = free_port()
    common = ["fi_pingpong", "-p", "rio", "-e", "rdm", "-c", "-m", kind, "-I", "20", "-S", size]
    env = {**os.environ, "FI_RIO_FABRIC": f"pingpong-{os.getpid()}"}
    with subprocess.Popen([*common, "-B", port], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True) as server:
        try:
            end = time.monotonic() + BOUND_S
            while True:  # until the server listens
                client = subprocess.run([*common, "-P", port, "127.0.0.1"], env=env, capture_output=True, text=True,
                                        timeout=BOUND_S, check=False)
                if client.returncode == 0 or server.poll() is not None or time.monotonic() > end:
                    break
            output, _ = server.communicate(timeout=BOUND_S)
        finally:
            server.kill()
    if client.returncode != 0 or server.returncode != 0:
        sys.exit(f"{kind}, {size} bytes: client {client.returncode}, server {server.returncode}\n"
                 f"{client.stdout}{client.stderr}{output}")


def main():
    if shutil.which("fi_pingpong") is None:
        print("skipped: fi_pingpong is missing; install libfabric-bin")
        sys.exit(77)
    for kind in ("msg", "tagged"):
        for size in ("1", "4096", "1048576"):
            run(kind, size)


main()
