"""A certificate authority for one run, and a server's certificate from it, made with openssl."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

CURVE = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-days", "2"]
NAMES = "subjectAltName=DNS:localhost,IP:127.0.0.1"


@dataclass(frozen=True)
class Authority:
    """Files: what a client trusts, and what a server shows."""

    trusted: Path
    certificate: Path
    key: Path


def create_authority(folder: Path) -> Authority:
    openssl = shutil.which("openssl")
    if openssl is None:
        raise SystemExit("bench: openssl is missing; install it with: sudo apt-get install openssl")
    found = Authority(folder / "authority.pem", folder / "server.pem", folder / "server.key")
    secret = folder / "authority.key"
    root = ["-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign"]
    leaf = ["-addext", "basicConstraints=critical,CA:FALSE", "-addext", NAMES, "-CA", found.trusted, "-CAkey", secret]
    for subject, options, key, file in (
        ("/CN=bench authority", root, secret, found.trusted),
        ("/CN=localhost", leaf, found.key, found.certificate),
    ):
        command = [openssl, "req", "-x509", *CURVE, "-subj", subject, *options, "-keyout", key, "-out", file]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"bench: openssl made no certificate: {done.stderr.strip().splitlines()[-1]}")
    return found
