"""Unpack pinned packages of npm, PyPI and Debian in the cache."""

import hashlib
import subprocess
import sys
import zipfile
from base64 import b64encode
from pathlib import Path
from typing import Any

import peer_environments


def unpack_package(package: dict[str, Any]) -> Path:
    """Return the folder of a package, unpacked in the cache."""
    if package["source"] == "debian":
        return peer_environments.unpack_debian_packages({package["name"]: package["version"]})[0]
    folder = (
        peer_environments.find_cache() / package["source"] / f"{package['name'].replace('/', '_')}_{package['version']}"
    )
    if not (folder / "ready").exists():
        folder.mkdir(parents=True, exist_ok=True)
        _unpack_npm(package, folder) if package["source"] == "npm" else _unpack_wheel(package, folder)
        (folder / "ready").touch()
    return folder


def list_files(home: Path, patterns: list[str]) -> list[Path]:
    return sorted({path for pattern in patterns for path in home.glob(pattern) if path.is_file()})


def _unpack_npm(package: dict[str, Any], folder: Path) -> None:
    named = f"{package['name']}@{package['version']}"
    peer_environments.print_status(f"downloading {named}")
    packed = subprocess.run(["npm", "pack", "--silent", named], cwd=folder, check=True, capture_output=True, text=True)
    file = folder / packed.stdout.split()[-1]
    _check_integrity(package, file)
    subprocess.run(["tar", "-xzf", file, "-C", folder, "--strip-components", "1", "--warning=none"], check=True)
    file.unlink()


def _unpack_wheel(package: dict[str, Any], folder: Path) -> None:
    named = f"{package['name']}=={package['version']}"
    peer_environments.print_status(f"downloading {named}")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--only-binary", ":all:", named], cwd=folder, check=True)
    for file in folder.glob("*.whl"):
        _check_integrity(package, file)
        zipfile.ZipFile(file).extractall(folder)
        file.unlink()


def _check_integrity(package: dict[str, Any], file: Path) -> None:
    """Stop if an archive is not the one that was pinned; a wheel for this machine only has no pin."""
    found = f"sha512-{b64encode(hashlib.sha512(file.read_bytes()).digest()).decode()}"
    if package.get("integrity", found) != found:
        raise SystemExit(f"bench: {file.name} is not what was pinned in real_packages.json")
