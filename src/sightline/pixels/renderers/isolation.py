"""Take rights away from a process that works on untrusted files. Linux only; elsewhere nothing happens.

Two mechanisms of the kernel need no privileges, are inherited by child processes, and cannot be undone:

- seccomp: a small program in the kernel (BPF) sees each system call and denies those that reach the network, other
  processes or the attributes of files (`CallRules`). A worker may open no socket at all; a program may open local
  ones, which some need to talk to themselves, but not connect them to others.
- Landlock: opening a file outside the listed folders is denied. Listed are libraries, fonts and, for a program, its
  own temporary folder. It also denies TCP, abstract sockets, and signals to other processes, where the kernel is new
  enough.

A kernel that lacks one of them leaves the other; `isolate_process` returns what is in force.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

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


# A call is denied (it fails with EPERM), ignored (it does nothing, and reports success), hidden (the kernel seems not
# to have it, so that the C library uses another one), or allowed if its arguments have certain values. All others are
# allowed: what they can do is limited by Landlock and by what the process has open.
#
# The rules are about the rest of the machine: no network, no other processes, no shared memory, and no change to the
# mode, owner, times or attributes of files, which Landlock leaves to the rights of the user. If that is root, only this
# filter protects files that the process may read.

# Numbers of calls on x86_64 and aarch64; None: that architecture has no such call.
_NUMBERS: Mapping[str, tuple[int | None, int | None]] = {
    # network and programs
    "socket": (41, 198),
    "socketpair": (53, 199),
    "connect": (42, 203),
    "io_uring_setup": (425, 425),
    "execve": (59, 221),
    "execveat": (322, 281),
    "fork": (57, None),
    "vfork": (58, None),
    "clone": (56, 220),
    "clone3": (435, 435),
    # other processes
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424),
    "pidfd_getfd": (438, 438),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "prlimit64": (302, 261),
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
    "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118),
    "sched_setattr": (314, 274),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    "perf_event_open": (298, 241),
    # memory, semaphores, queues and keys that processes share by a number or a name
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "semget": (64, 190),
    "semop": (65, 193),
    "semtimedop": (220, 192),
    "semctl": (66, 191),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "mq_open": (240, 180),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # attributes of files
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
    # other views of the file system
    "chroot": (161, 51),
    "pivot_root": (155, 41),
    "mount": (165, 40),
    "umount2": (166, 39),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "unshare": (272, 97),
    "setns": (308, 268),
    "open_by_handle_at": (304, 265),
    "inotify_init": (253, None),
    "inotify_init1": (294, 26),
    "fanotify_init": (300, 262),
    # the machine
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "syslog": (103, 116),
    # needed to install the filter
    "seccomp": (317, 277),
}
_ARCHITECTURES: Mapping[str, tuple[int, int]] = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
_FIRST_X32_CALL = 0x40000000  # a second set of numbers on x86_64, all of which are denied


class ArgumentRule(NamedTuple):
    """A value that an argument must have, as far as the bits of the mask go."""

    position: int
    value: int
    mask: int = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class CallRules:
    """What becomes of calls, by their names."""

    denied: Sequence[str]
    ignored: Sequence[str] = ()
    hidden: Sequence[str] = ()
    allowed_if: Mapping[str, Sequence[ArgumentRule]] = field(default_factory=dict)


_ATTRIBUTES = (
    *("chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat"),
    *("utime", "utimes", "futimesat", "utimensat"),
    *("setxattr", "lsetxattr", "fsetxattr", "setxattrat"),
    *("removexattr", "lremovexattr", "fremovexattr", "removexattrat", "file_setattr"),
)
_NEVER = (
    *("io_uring_setup", "connect", "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp"),
    *("pidfd_getfd", "setpriority", "ioprio_set", "sched_setscheduler", "sched_setparam", "sched_setattr"),
    *("migrate_pages", "move_pages", "perf_event_open"),
    *("shmget", "shmat", "shmctl", "semget", "semop", "semtimedop", "semctl"),
    *("msgget", "msgsnd", "msgrcv", "msgctl", "mq_open", "add_key", "request_key", "keyctl"),
    *("mount", "umount2", "pivot_root", "open_tree", "move_mount", "fsopen", "fspick", "mount_setattr"),
    *("open_by_handle_at", "fanotify_init", "bpf", "userfaultfd", "init_module", "finit_module", "delete_module"),
    *("kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff", "settimeofday", "clock_settime"),
    *("clock_adjtime", "adjtimex", "sethostname", "setdomainname", "acct", "quotactl", "syslog"),
    *("chroot", "unshare", "setns"),
)
_NOT_IN_WORKERS = (
    *("socket", "socketpair", "execve", "execveat", "kill", "tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"),
    *("fork", "vfork", "pidfd_open", "pidfd_send_signal", "inotify_init", "inotify_init1"),
)
_OWN_LIMITS = {"prlimit64": (ArgumentRule(0, 0),), "sched_setaffinity": (ArgumentRule(0, 0),)}  # 0: of this process
_AF_UNIX, _STREAM, _PACKETS = 1, 1, 5  # domain and types of sockets
# Without `connect`, a local socket reaches only what the program itself has made, unless it sends single messages.
_LOCAL_SOCKETS = (ArgumentRule(0, _AF_UNIX), ArgumentRule(1, _STREAM, 0xF ^ _STREAM ^ _PACKETS))


_THREAD = 0x10000  # of the flags of clone(2)


def make_worker_rules(process: int) -> CallRules:
    """Return the rules for a worker: no sockets, no processes, no signals but to itself, whose number is given.

    It may start threads, by `clone`, whose flags are in an argument; those of `clone3` are not.
    """
    threads = (ArgumentRule(0, _THREAD, _THREAD),)
    conditions = {**_OWN_LIMITS, "tgkill": (ArgumentRule(0, process),), "clone": threads}
    return CallRules((*_NEVER, *_NOT_IN_WORKERS, *_ATTRIBUTES), hidden=("clone3",), allowed_if=conditions)


def make_program_rules() -> CallRules:
    """Return the rules for a program, which may start others and talk to them.

    Programs set the modes and times of files that they have just made, and some fail if they cannot.
    """
    conditions = {**_OWN_LIMITS, "socket": _LOCAL_SOCKETS, "socketpair": _LOCAL_SOCKETS}
    return CallRules(_NEVER, ignored=_ATTRIBUTES, allowed_if=conditions)


# Instructions of BPF: load a word of `struct seccomp_data`, mask it, compare it, return.
_LOAD, _AND, _IF_EQUAL, _IF_AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
_CALL_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT, _ARGUMENT_BYTES = 0, 4, 16, 8  # offsets in it; the low word comes first
_ALLOW, _IGNORE, _DENY, _HIDE = 0x7FFF0000, 0x00050000, 0x00050001, 0x00050026  # errors: 0 (none), EPERM, ENOSYS

_Instruction = tuple[int, int, int, int]  # its code, how many to skip if its comparison holds, and if not, and a value


def find_seccomp_number() -> int | None:
    """Return the number of the call that installs a filter; None: filters for this architecture are unknown."""
    known = _ARCHITECTURES.get(platform.machine())
    return None if known is None else _NUMBERS["seccomp"][known[1]]


def build_filter(rules: CallRules) -> bytes:
    """Return the program for this architecture."""
    architecture, column = _ARCHITECTURES[platform.machine()]
    deny, ignore, hide, allow = ((_RETURN, 0, 0, action) for action in (_DENY, _IGNORE, _HIDE, _ALLOW))
    program: list[_Instruction] = [(_LOAD, 0, 0, _ARCHITECTURE), (_IF_EQUAL, 1, 0, architecture), deny]
    program += [(_LOAD, 0, 0, _CALL_NUMBER), (_IF_AT_LEAST, 0, 1, _FIRST_X32_CALL), deny]
    for names, action in ((rules.denied, deny), (rules.ignored, ignore), (rules.hidden, hide)):
        numbers = [number for name in names if (number := _NUMBERS[name][column]) is not None]
        for number in numbers:
            program += [(_IF_EQUAL, 0, 1, number), action]
    for name, arguments in rules.allowed_if.items():
        number = _NUMBERS[name][column]
        assert number is not None, "conditions are only for calls that every architecture has"
        checks = [step for rule in arguments for step in (*_check_argument(rule), deny)]
        program += [(_IF_EQUAL, 0, len(checks) + 1, number), *checks, allow]
    program.append(allow)
    return b"".join(struct.pack("@HBBI", *each) for each in program)


def _check_argument(rule: ArgumentRule) -> tuple[_Instruction, ...]:
    """Return instructions that skip the next one if an argument has its value."""
    load = (_LOAD, 0, 0, _FIRST_ARGUMENT + _ARGUMENT_BYTES * rule.position)
    return load, (_AND, 0, 0, rule.mask), (_IF_EQUAL, 1, 0, rule.value & rule.mask)
