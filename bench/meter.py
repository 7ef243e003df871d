"""What a process and its children have used: CPU seconds and megabytes of memory."""

import time
from collections.abc import Iterator
from pathlib import Path


def _list_processes(pid: int) -> Iterator[int]:
    yield pid
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in children.read_text().split():
            yield from _list_processes(int(child))


def read_cpu_seconds(pid: int) -> float:
    """User and system time of every living process of the family.

    /proc/PID/stat counts it in ticks of 10 ms. The process clock of clock_getcpuclockid(3), whose number is
    made from the pid in this way, counts the same time in nanoseconds.
    """
    return sum(read_cpu_by_process(pid).values())


def read_cpu_by_process(pid: int) -> dict[int, float]:
    """Return the same for each process."""
    return {member: time.clock_gettime((~member << 3) | 2) for member in _list_processes(pid)}


def _read_megabytes(pid: int, field: str) -> float:
    lines = (
        line for member in _list_processes(pid) for line in Path(f"/proc/{member}/status").read_text().splitlines()
    )
    return sum(int(line.split()[1]) for line in lines if line.startswith(f"{field}:")) / 1024


def read_available_gb() -> float:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")) / 1024**2


def read_resident_mb(pid: int) -> float:
    return _read_megabytes(pid, "VmRSS")


def read_peak_mb(pid: int) -> float:
    return _read_megabytes(pid, "VmHWM")
