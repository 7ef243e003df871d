"""Take rights away from a process that works on untrusted files. Linux only; elsewhere nothing happens.

Two mechanisms of the kernel need no privileges, are inherited by child processes, and cannot be undone:

- seccomp: a small program in the kernel (BPF) sees each system call and denies those that reach the network, other
  processes or the attributes of files (`seccomp_filter`). A worker may open no socket at all; a program may open local
  ones, which some need to talk to themselves, but not connect them to others.
- Landlock: opening a file outside the listed folders is denied. Listed are libraries, fonts and, for a program, its
  own temporary folder. It also denies TCP, abstract sockets, and signals to other processes, where the kernel is new
  enough.

A kernel that lacks one of them leaves the other; `isolate_process` returns what is in force.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from sightline.pixels.renderers.seccomp_filter import (
    CallRules,
    build_filter,
    find_seccomp_number,
    make_program_rules,
    make_worker_rules,
)

Mechanism = Literal["seccomp", "landlock"]

_SET_FILTER, _ALL_THREADS = 1, 1
_NO_NEW_PRIVILEGES, _DIE_WITH_PARENT = 38, 1  # of prctl(2)

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION, _PATH_BENEATH = 1, 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_SOCKET, _TRUNCATE, _DEVICE_CALLS = 1 << 9, 1 << 14, 1 << 15
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _DEVICE_CALLS
_RIGHTS_OF_VERSION = (13, 14, 15, 15, 16)  # how many rights on files versions 1 to 5 of Landlock know; later ones: 16

_SYSTEM_FOLDERS = ("/usr", "/lib", "/lib64", "/nix/store", "/etc/ld.so.cache", "/etc/fonts", "/var/cache/fontconfig")
_PROGRAM_FOLDERS = ("/bin", "/opt", "/etc/alternatives", "/etc/localtime", "/sys/devices/system/cpu")
# All of /proc would be too much: the environment of other processes, with the keys of the user, is there.
_PROC_FILES = ("cpuinfo", "filesystems", "meminfo", "stat", "sys", "version")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")


def isolate_worker() -> frozenset[Mechanism]:
    """Isolate this process: no sockets, no programs, and no files but libraries and fonts."""
    return isolate_process(_list_library_folders(), (), make_worker_rules(os.getpid()))


def isolate_program(folder: str, readable: Sequence[str], socket_folders: Sequence[str]) -> frozenset[Mechanism]:
    """Isolate this process before it becomes a program, which may read the system and use one folder as it likes.

    In the socket folders it may make sockets, and nothing else.
    """
    proc = [f"/proc/{name}" for name in (os.getpid(), *_PROC_FILES)]
    allowed = [*_SYSTEM_FOLDERS, *_PROGRAM_FOLDERS, *proc, *readable]
    return isolate_process(allowed, [folder], make_program_rules(), socket_folders)


def isolate_process(
    readable: Sequence[str], writable: Sequence[str], rules: CallRules, socket_folders: Sequence[str] = ()
) -> frozenset[Mechanism]:
    """Deny system calls by rules, and all files but those below these folders; return what is in force."""
    if sys.platform != "linux":
        return frozenset()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        return frozenset()
    landlock = _restrict_files(libc, readable, writable, socket_folders)
    seccomp = _restrict_calls(libc, rules)
    applied: tuple[tuple[Mechanism, bool], ...] = (("landlock", landlock), ("seccomp", seccomp))
    return frozenset(name for name, holds in applied if holds)


def _restrict_calls(libc: ctypes.CDLL, rules: CallRules) -> bool:
    seccomp = find_seccomp_number()
    if seccomp is None:
        return False
    program = build_filter(rules)
    code = ctypes.create_string_buffer(program)
    header = struct.pack("@HP", len(program) // 8, ctypes.addressof(code))
    return bool(libc.syscall(seccomp, _SET_FILTER, _ALL_THREADS, ctypes.c_char_p(header)) == 0)


def _restrict_files(
    libc: ctypes.CDLL, readable: Sequence[str], writable: Sequence[str], socket_folders: Sequence[str]
) -> bool:
    version = libc.syscall(_CREATE_RULESET, None, 0, _ASK_VERSION)
    if version < 1:
        return False
    every = (1 << (*_RIGHTS_OF_VERSION, 16)[min(version, 6) - 1]) - 1
    network, scopes = (3 if version >= 4 else 0), (3 if version >= 6 else 0)
    rules = struct.pack("=QQQ", every, network, scopes)[: 8 if version < 4 else 16 if version < 6 else 24]
    ruleset = libc.syscall(_CREATE_RULESET, ctypes.c_char_p(rules), len(rules), 0)
    if ruleset < 0:
        return False
    try:
        for path in readable:
            _allow(libc, ruleset, path, _EXECUTE | _READ_FILE | _READ_DIR)
        for path in _DEVICES:
            _allow(libc, ruleset, path, _READ_FILE | _WRITE_FILE)
        for path in socket_folders:
            _allow(libc, ruleset, path, _MAKE_SOCKET)
        for path in writable:
            _allow(libc, ruleset, path, every)
        return bool(libc.syscall(_RESTRICT_SELF, ruleset, 0) == 0)
    finally:
        os.close(ruleset)


def _allow(libc: ctypes.CDLL, ruleset: int, path: str, rights: int) -> None:
    """Allow access to a folder and all below it, or to a file; nothing happens if it isn't there."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        rights &= -1 if Path(path).is_dir() else _FILE_RIGHTS
        libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.c_char_p(struct.pack("=Qi", rights, descriptor)), 0)
    finally:
        os.close(descriptor)


def _list_library_folders() -> list[str]:
    """Return the folders of the system's libraries and fonts, of Python and its packages, and of Sightline."""
    packages = [each for each in sys.path if Path(each).name in ("site-packages", "dist-packages")]
    own = str(Path(__file__).parents[2])
    return [*_SYSTEM_FOLDERS, sys.prefix, sys.base_prefix, *packages, own]


def launch_program(
    folder: str,
    readable: Sequence[str],
    socket_folders: Sequence[str],
    limits: Mapping[str, int],
    command: Sequence[str],
) -> None:
    """Isolate and limit this process, then become a program. It ends with the process that started it."""
    import resource

    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, 9, 0, 0, 0)
    for name, limit in limits.items():
        resource.setrlimit(getattr(resource, name), (limit, limit))
    isolate_program(folder, readable, socket_folders)
    os.execv(command[0], list(command))  # noqa: S606, there is no shell
