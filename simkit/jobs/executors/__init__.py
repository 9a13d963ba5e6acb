"""Where the chunks of a sweep are computed: in this process, by worker processes, or on a Dask cluster."""
