"""Installs the peers: nginx from Debian, LiteLLM into an environment of its own outside the checkout."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LITELLM_LOCK = ROOT / "requirements" / "bench-litellm.txt"
SBIN = "/usr/sbin"  # where Debian puts nginx, and where an ordinary user's PATH does not look


def _cache() -> Path:
    if cache := os.environ.get("SIGHTLINE_CACHE"):
        return Path(cache)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sightline"


def _say(line: str) -> None:
    print(f"bench: {line}", file=sys.stderr, flush=True)


def nginx() -> str:
    """The path of nginx; installs Debian's package when it is missing and we may."""
    path = f"{os.environ.get('PATH', os.defpath)}:{SBIN}"
    if found := shutil.which("nginx", path=path):
        return found
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise SystemExit("bench: nginx is missing; install it with: sudo apt-get install nginx-light")
    _say("installing nginx with apt-get")
    quiet = ["apt-get", "--quiet", "--quiet", "--yes", "--no-install-recommends"]
    # Told that the runlevel is 1, Debian starts no service: the benchmark runs its own.
    start_nothing = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    for step in (["update"], ["install", "nginx-light"]):
        done = subprocess.run([*quiet, *step], env=start_nothing, stdout=subprocess.DEVNULL, check=False)
        if done.returncode:
            raise SystemExit(f"bench: apt-get {step[0]} failed; install nginx by hand and run again")
    return nginx()


def litellm() -> Path:
    """The folder of LiteLLM's environment, made from its lock once and kept while the lock stays the same."""
    key = hashlib.sha256(LITELLM_LOCK.read_bytes() + sys.version.encode()).hexdigest()[:16]
    home = _cache() / f"bench-litellm-{key}"
    if (home / "ready").exists():
        return home
    _say(f"installing LiteLLM into {home} (once; about two minutes)")
    pip: list[str | Path] = [
        home / "bin" / "python",
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        "--quiet",
        "--quiet",
    ]
    steps: tuple[list[str | Path], ...] = (
        [sys.executable, "-m", "venv", "--clear", home],
        [*pip, "--require-hashes", "-r", LITELLM_LOCK],
    )
    for step in steps:
        if subprocess.run(step, check=False).returncode:
            raise SystemExit("bench: installing LiteLLM failed; is PyPI reachable? Run again to retry")
    (home / "ready").touch()
    return home


if __name__ == "__main__":
    print(nginx())
    print(litellm())
