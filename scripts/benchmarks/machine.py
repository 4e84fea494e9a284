"""What machine this is, and what its processes use, from /proc: Linux only.

Memory is told as PSS: a page that n processes share counts as 1/n in each.
"""

import os
import platform
import subprocess
from pathlib import Path

MB = 1e6


def describe() -> dict[str, object]:
    cpu = [
        line.partition(":")[2].strip()
        for line in _text("/proc/cpuinfo").splitlines()
        if line.startswith("model name")
    ]
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "system": f"{platform.system()} {platform.release().split('-')[0]} {platform.machine()}",
        "processor": cpu[0] if cpu else platform.processor(),
        "processors": processors(),
        "memory_gib": round(total / 2**30, 1),
    }


def processors() -> int:
    return len(os.sched_getaffinity(0))


def commit(root: Path) -> str:
    """The commit that is measured; a plus says that files differ from it."""
    text = subprocess.run(
        ["git", "describe", "--always", "--dirty=+", "--exclude=*"],
        cwd=root,
        capture_output=True,
        text=True,
    )
    return text.stdout.strip()


def memory(pid: int) -> dict[str, float]:
    """A process's memory in MB: rss, pss, and own (what nobody else has mapped)."""
    rss = pss = own = 0.0
    for line in _text(f"/proc/{pid}/smaps_rollup").splitlines()[1:]:
        name, _, rest = line.partition(":")
        size = float(rest.split()[0]) * 1024 / MB
        if name == "Rss":
            rss = size
        elif name == "Pss":
            pss = size
        elif name in ("Private_Clean", "Private_Dirty"):
            own += size
    return {"rss": rss, "pss": pss, "own": own}


def peak_rss(pid: int) -> float:
    """The most that a process had in memory since reset_peak, in MB."""
    for line in _text(f"/proc/{pid}/status").splitlines():
        if line.startswith("VmHWM:"):
            return float(line.split()[1]) * 1024 / MB
    return 0.0


def reset_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def tree(pid: int) -> list[int]:
    """A process and all that it started, as far as they have not left it."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            stat = _text(entry / "stat").rpartition(")")[2].split()
            if stat:
                children.setdefault(int(stat[1]), []).append(int(entry.name))
    found = [pid]
    for one in found:
        found += children.get(one, [])
    return found


def program_of(pid: int) -> str:
    """The path of a process's executable; empty when it has ended."""
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return ""


def command_line(pid: int) -> str:
    """A process's command line; empty when it has ended."""
    return _text(f"/proc/{pid}/cmdline").replace("\0", " ")


def processor_seconds(pids: list[int]) -> float:
    """The processor time that processes have used so far."""
    ticks = 0
    for pid in pids:
        stat = _text(f"/proc/{pid}/stat").rpartition(")")[2].split()
        if stat:
            ticks += int(stat[11]) + int(stat[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def runnable(pids: list[int]) -> bool:
    """Whether a thread of the processes runs, or waits for a processor."""
    for pid in pids:
        for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
            if _text(stat).rpartition(")")[2].split()[:1] == ["R"]:
                return True
    return False


def _text(path: str | Path) -> str:
    """A file of /proc; empty when its process has ended."""
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""
