"""Executors of the chunks of a sweep: this process, worker processes of this machine, or a Dask cluster."""
