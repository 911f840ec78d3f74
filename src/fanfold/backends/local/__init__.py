"""The local backend: worker processes on this machine, without any server."""
