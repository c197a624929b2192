#!/usr/bin/python3
"""Runs a command in the sandbox that a systemd unit describes, without systemd, as far as an unprivileged user can build it.

usage: sandbox.py UNIT WRITABLE… -- COMMAND…

Directives taken from the unit: SystemCallFilter=, RestrictAddressFamilies=, MemoryDenyWriteExecute=, RestrictNamespaces=, NoNewPrivileges=,
CapabilityBoundingSet=, UMask=, Limit…=, PrivateUsers=, PrivateIPC=, ProtectHostname=, ProtectSystem=strict with its WRITABLE exceptions and
InaccessiblePaths=, of which %h is $HOME and %t is $XDG_RUNTIME_DIR.
Exit code 77: this machine does not allow it; standard error names the refused operation.
"""
import ctypes
import errno
import os
import re
import resource
import socket
import struct
import subprocess
import sys

libc = ctypes.CDLL(None, use_errno=True)
CLONE = {"user": 0x10000000, "mnt": 0x00020000, "ipc": 0x08000000, "uts": 0x04000000}
ALL_NAMESPACES = 0x7E020080
MS_RDONLY, MS_BIND, MS_REC, MS_PRIVATE = 1, 4096, 16384, 1 << 18
AT_FDCWD, AT_RECURSIVE, MOUNT_ATTR_RDONLY, SYS_mount_setattr = -100, 0x8000, 1, 442
PR_SET_NO_NEW_PRIVS, PR_CAPBSET_DROP, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 38, 24, 47, 4


def unable(what):
    print(f"sandbox: {what}", file=sys.stderr)
    sys.exit(77)


def call(what, result):
    if result < 0:
        unable(f"{what}: {os.strerror(ctypes.get_errno())}")


def directives(path):
    """name → its values, in order, one list"""
    found = {}
    with open(path, encoding="utf-8") as file:
        for key, value in re.findall(r"^(\w+)=(.*)$", file.read(), re.MULTILINE):
            found.setdefault(key, []).extend(value.split() or [""])
    return found


def groups():
    """@group → its system calls, as systemd defines them"""
    text = subprocess.run(["systemd-analyze", "--no-pager", "syscall-filter"], capture_output=True, text=True, check=True).stdout
    found, name = {}, None
    for line in text.splitlines():
        if line.startswith("@"):
            name = found.setdefault(line.strip(), [])
        elif line.startswith("    ") and name is not None and not line.strip().startswith("#"):
            name.append(line.strip())
    return found


def calls_of(word, groups_by_name):
    return {word} if not word.startswith("@") else set().union(*(calls_of(each, groups_by_name) for each in groups_by_name[word]))


def allowed(words, groups_by_name):
    """The calls of an allow list, without the groups after a ~ (which applies to the rest of its line)."""
    calls, denied = calls_of("@default", groups_by_name), False
    for word in words:
        denied = word.startswith("~") or (denied and word.startswith("@"))
        calls = calls - calls_of(word.lstrip("~"), groups_by_name) if denied else calls | calls_of(word, groups_by_name)
    return calls | calls_of("@default", groups_by_name)


def filters(unit, groups_by_name):
    import seccomp
    refuse = seccomp.ERRNO(errno.EPERM)
    only = seccomp.SyscallFilter(refuse)
    for name in sorted(allowed(unit["SystemCallFilter"], groups_by_name)):
        try:
            only.add_rule(seccomp.ALLOW, name)
        except (RuntimeError, ValueError):
            pass  # a call of another architecture
    more = seccomp.SyscallFilter(seccomp.ALLOW)
    families = {int(getattr(socket, name)) for name in unit["RestrictAddressFamilies"]}
    no_family = seccomp.ERRNO(errno.EAFNOSUPPORT)
    more.add_rule(no_family, "socket", seccomp.Arg(0, seccomp.GT, max(families)))
    for family in set(range(max(families))) - families:
        more.add_rule(no_family, "socket", seccomp.Arg(0, seccomp.EQ, family))
    if unit["MemoryDenyWriteExecute"] == ["yes"]:
        more.add_rule(refuse, "mmap", seccomp.Arg(2, seccomp.MASKED_EQ, 6, 6))
        more.add_rule(refuse, "mprotect", seccomp.Arg(2, seccomp.MASKED_EQ, 4, 4))
        more.add_rule(refuse, "pkey_mprotect", seccomp.Arg(2, seccomp.MASKED_EQ, 4, 4))
    if unit["RestrictNamespaces"] == ["yes"]:
        for bit in (1 << n for n in range(32)):
            if ALL_NAMESPACES & bit:
                more.add_rule(refuse, "clone", seccomp.Arg(0, seccomp.MASKED_EQ, bit, bit))
        for name in ("unshare", "setns"):
            more.add_rule(refuse, name)
    return only, more


def own_namespaces(unit):
    wanted = CLONE["user"] | CLONE["mnt"]
    wanted |= CLONE["ipc"] if unit["PrivateIPC"] == ["yes"] else 0
    wanted |= CLONE["uts"] if unit["ProtectHostname"] == ["yes"] else 0
    uid, gid = os.geteuid(), os.getegid()
    call("a user namespace", libc.unshare(wanted))
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        try:
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
        except OSError as failure:
            unable(f"/proc/self/{name}: {failure}")


def set_mount_attributes(path, set_bits, clear_bits, flags):
    attributes = struct.pack("QQQQ", set_bits, clear_bits, 0, 0)
    call(f"mount_setattr {path}", libc.syscall(SYS_mount_setattr, AT_FDCWD, path.encode(), flags, attributes, len(attributes)))


def read_only_but(writable):
    call("private mounts", libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None))
    for path in writable:
        call(f"bind {path}", libc.mount(path.encode(), path.encode(), None, MS_BIND | MS_REC, None))
    set_mount_attributes("/", MOUNT_ATTR_RDONLY, 0, AT_RECURSIVE)
    for path in writable:
        set_mount_attributes(path, 0, MOUNT_ATTR_RDONLY, AT_RECURSIVE)


def hide(paths):
    for path in paths:
        path = path.lstrip("-").replace("%h", os.environ["HOME"]).replace("%t", os.environ["XDG_RUNTIME_DIR"])
        if os.path.isdir(path):
            call(f"hide {path}", libc.mount(b"tmpfs", path.encode(), b"tmpfs", MS_RDONLY, b"mode=0"))
        elif os.path.exists(path):
            call(f"hide {path}", libc.mount(b"/dev/null", path.encode(), None, MS_BIND, None))


def main():
    split = sys.argv.index("--")
    unit, writable, command = directives(sys.argv[1]), sys.argv[2:split], sys.argv[split + 1:]
    assert unit["PrivateUsers"] == ["yes"] and unit["ProtectSystem"] == ["strict"] and unit["NoNewPrivileges"] == ["yes"]
    groups_by_name = groups()
    own_namespaces(unit)
    read_only_but(writable)
    if "XDG_RUNTIME_DIR" in os.environ:
        hide(unit["InaccessiblePaths"])
    os.umask(int(unit["UMask"][0], 8))
    for key, values in unit.items():
        if key.startswith("Limit"):
            number = min(int(values[0]), resource.getrlimit(getattr(resource, "RLIMIT_" + key[5:]))[1]) if values[0] != "0" else 0
            resource.setrlimit(getattr(resource, "RLIMIT_" + key[5:]), (number, number))
    only, more = filters(unit, groups_by_name)
    assert unit["CapabilityBoundingSet"] == [""]
    libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    capability = 0
    while libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0:
        capability += 1
    call("no new privileges", libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    more.load()
    only.load()
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
