"""What other libraries call the options of a stage, for people who come from there.

Owns that table. Which options there are is definition.py's, and so is what to do with a name of nobody's.
"""

from __future__ import annotations

from typing import Final

_OURS: Final = {
    "batch_size=, the most items of one batch": (
        *(
            "batch",
            "batched",
            "max_batch",
            "max_batch_size",
            "max_num_seqs",
            "preferred_batch_size",
        ),
        *("minibatch_size", "read_batch_size"),
    ),
    "max_batch_cost=, with batch_cost= as the number of tokens of an item": (
        *("max_num_batched_tokens", "max_tokens", "max_batch_tokens", "max_batch_total_tokens"),
    ),
    'batch_bytes=, the most bytes of input in one batch, such as "128MB"': (
        *("max_batch_bytes", "target_batch_bytes", "max_bytes"),
    ),
    "batch_by=, a function of an item: only equal values share a batch": (
        *("bucket_by", "group_by", "groupby", "batch_key", "length_buckets"),
    ),
    "linger_s=, the seconds that a batch that is not full waits for more": (
        *("batch_timeout", "batch_timeout_s", "batch_wait_timeout_s", "batch_wait_s", "linger"),
        *("linger_ms", "max_wait", "max_wait_s", "max_wait_ms", "max_latency_ms", "flush_interval"),
        *("flush_interval_s", "max_queue_delay", "max_queue_delay_microseconds", "wait_s"),
    ),
    "replicas=, the number of workers that hold the stage": (
        *("concurrency", "num_workers", "n_workers", "max_workers", "num_replicas", "n_replicas"),
        *("parallelism", "parallel", "processes", "num_proc", "n_jobs", "num_actors", "actors"),
        *("pool_size", "compute", "autoscaling", "autoscaling_config", "worker_count"),
    ),
    "cpus=, the cores of one replica": (
        *("num_cpus", "n_cpus", "cpu", "cores", "num_cores", "n_cores", "ncpus", "vcpus"),
        *("num_threads", "n_threads", "threads", "threads_per_worker", "cpus_per_task"),
        *("cpus_per_worker",),
    ),
    "gpus=, the GPUs of one replica": (
        *("num_gpus", "n_gpus", "gpu", "ngpus", "gpus_per_worker", "gpus_per_task"),
        *("tensor_parallel_size", "cuda_devices", "devices"),
    ),
    'memory=, what one replica\'s own heap needs, such as "4GB"': (
        *("memory_bytes", "memory_limit", "mem", "ram", "mem_limit", "max_memory"),
    ),
    'workers="thread"; otherwise a worker is a process': (
        *("use_process", "use_threads", "use_thread", "executor", "backend", "thread"),
    ),
    "max_in_flight=, the number of items that an async def stage keeps going": (
        *("max_concurrency", "max_concurrent", "max_ongoing_requests", "max_concurrent_queries"),
        *("max_concurrent_batches", "max_concurrent_requests", "in_flight", "max_inflight"),
        *("prefetch", "max_tasks_in_flight", "max_tasks_in_flight_per_actor"),
    ),
    'rate_limit=, calls per second in all workers together, or text such as "600/min"': (
        *(
            "rate",
            "rps",
            "qps",
            "rpm",
            "requests_per_minute",
            "requests_per_second",
            "rate_limit_s",
        ),
        *("max_requests_per_minute", "max_rps", "max_qps", "throttle"),
    ),
    "recycle_after=, the number of items after which a worker is replaced": (
        *("max_calls", "maxtasksperchild", "max_tasks_per_child", "max_requests"),
    ),
    "recycle_above=, the size above which a worker is replaced": (
        *("max_memory_per_child", "worker_max_memory", "reload_on_rss"),
    ),
    "retries=, how often an item is tried again": (
        *("max_retries", "num_retries", "retry", "max_task_retries", "attempts", "max_attempts"),
        *("tries", "max_tries", "max_restarts"),
    ),
    "outputs=, the number of ports that a call gives, or their names": (
        *("num_returns", "n_outputs", "num_outputs", "nout", "output_columns"),
    ),
    "method=, the name of the entry point of a class": ("entrypoint", "entry_point", "fn_method"),
    'schedule=, "fair" or "fifo"': ("order", "ordering", "priority", "scheduling_strategy"),
    'on_error=, "fail" or "stop"; ff.ItemFailure fails one item on purpose': (
        *("errors", "raise_on_error", "ignore_errors", "error_policy", "skip_errors"),
    ),
}
"""Our options with what they say, and other names of them."""
_NO_OPTION: Final = {
    "setup_on_node": "It is no option but a static method of the stage's class.",
    "setup": "It is no option: a class's constructor runs once per worker.",
    "initializer": "It is no option: a class's constructor runs once per worker.",
    "init": "It is no option: a class's constructor runs once per worker.",
} | dict.fromkeys(
    ("fn_args", "fn_kwargs", "fn_constructor_args", "fn_constructor_kwargs", "initargs"),
    "It is no option: a class's constructor arguments go into a first call, ff.stage(Ocr)(weights), and a "
    "function's keyword arguments beside the ports.",
)
_SAID: Final = _NO_OPTION | {
    name: f"Here it is {ours}." for ours, names in _OURS.items() for name in names
}


def said_elsewhere(name: str) -> str | None:
    """What an option is called here, as a sentence; None for a name that is in no table.

    >>> said_elsewhere("cores")
    'Here it is cpus=, the cores of one replica.'
    """
    return _SAID.get(name)
