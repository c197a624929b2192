"""Runs systemd in its own namespaces: a user manager or a system manager with only the test's units.

Needs root and a writable cgroup2; otherwise the test is skipped with the reason. The machine is not changed: in the
namespaces the root directory is read-only, and /run, /home, /tmp and /var/lib are empty and private.
"""
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading

from support.harness import TOP, build, deadline_s, wait_for

uid = 6174
systemd = "/lib/systemd/systemd"
PREPARE = r"""
set -eu
scratch=$1 kind=$2 uid=$3
echo $$ >"$scratch/cgroup.procs" 2>/dev/null
exec unshare --mount --cgroup --pid --ipc --uts $([ "$kind" = system ] && echo --net) --fork --kill-child /bin/sh -euc '
  kind=$1 uid=$2 bin=$3 tests=$4 units=$5
  mount --make-rprivate /
  mount -t tmpfs -o mode=755 tmpfs /opt
  cp "$bin"/earshotd "$bin"/earshot "$bin"/earshot-notify "$tests"/transcripts.py /opt
  cp -r "$units" /opt/units
  mount -t tmpfs -o mode=755 tmpfs /run
  for place in /home /var/lib; do mount -t tmpfs -o mode=755 tmpfs $place; done
  for place in /tmp /var/tmp; do mount -t tmpfs -o mode=1777 tmpfs $place; done
  mkdir -p /run/systemd/system /run/systemd/unit-root /run/user/$uid /home/ada/.claude/projects /home/bob /home/ada/.ssh
  sed "\$a ada:x:$uid:$uid::/home/ada:/bin/sh" /etc/passwd >/run/passwd
  sed "\$a ada:x:$uid:" /etc/group >/run/group
  mount --bind /run/passwd /etc/passwd
  mount --bind /run/group /etc/group
  echo secret >/home/ada/.ssh/id
  echo hidden >/home/bob/file
  chown -R $uid:$uid /home/ada /run/user/$uid
  chmod 700 /home/ada /run/user/$uid
  umount --recursive /sys/fs/cgroup
  mount -t cgroup2 cgroup2 /sys/fs/cgroup
  mount -t proc proc /proc
  mount --bind /proc/sys /proc/sys
  mount -o remount,bind,ro /proc/sys
  mount -o remount,bind,ro /
  mount --bind /dev/null /dev/console
  echo prepared
  if [ "$kind" = system ]; then
    exec env -i PATH=/usr/bin:/bin container=test SYSTEMD_UNIT_PATH=/opt/units '"$0"' --system --unit=test.target --show-status=0 \
      --log-level=info --log-target=console
  fi
  mkdir /sys/fs/cgroup/user
  chown -R $uid:$uid /sys/fs/cgroup/user
  echo 0 >/sys/fs/cgroup/user/cgroup.procs
  chown $uid /sys/fs/cgroup/cgroup.procs
  setpriv --reuid=$uid --regid=$uid --clear-groups env -i HOME=/home/ada USER=ada PATH=/opt:/usr/bin:/bin XDG_RUNTIME_DIR=/run/user/$uid \
    '"$0"' --user --unit=default.target --log-level=info --log-target=console &
  wait $! || echo "exit code $?"
' "$0" "$kind" "$uid" "$4" "$5" "$6"
"""


def missing():
    """Why systemd cannot run here, or None."""
    if os.geteuid() != 0:
        return "only root can give systemd namespaces of its own"
    if not os.access(systemd, os.X_OK):
        return f"there is no {systemd}"
    for tool in ("unshare", "nsenter", "setpriv"):
        if not shutil.which(tool):
            return f"there is no {tool} (util-linux)"
    version = re.match(r"systemd (\d+)", subprocess.run([systemd, "--version"], capture_output=True, text=True).stdout)
    if not version or int(version[1]) < 252:
        return "systemd is older than 252"
    if not cgroups():
        return "no cgroup2 is mounted where it can be written"
    return None


def cgroups():
    with open("/proc/self/mounts") as mounts:
        places = [line.split()[1] for line in mounts if line.split()[2] == "cgroup2"]
    return next((place for place in places if os.access(place, os.W_OK) and not os.statvfs(place).f_flag & os.ST_RDONLY), None)


class Manager:
    """kind is "user" (the user ada) or "system". `units` is a directory of units to add."""

    def __init__(self, kind, units, home):
        self.kind = kind
        self.cgroup = tempfile.mkdtemp(prefix="earshot-test-", dir=cgroups())
        os.chmod(self.cgroup, 0o755)
        self.log = open(os.path.join(home, f"{kind}-manager.log"), "w+")
        self.process = subprocess.Popen(["/bin/sh", "-c", PREPARE.replace("'\"$0\"'", systemd), "sh", self.cgroup, kind, str(uid), build(),
                                         os.path.join(TOP, "tests", "integration", "support"), units],
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        self.agents = []

    def output(self):
        self.log.flush()
        with open(self.log.name, errors="replace") as log:
            return log.read()

    def prepared(self):
        """False if this machine does not allow the namespaces; output() has the reason."""
        return wait_for(lambda: "prepared\n" in self.output() or self.process.poll() is not None, "the namespaces") and self.process.poll() is None

    def wait_up(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as children:
            self.init = children.read().split()[0]
        self.root = f"/proc/{self.init}/root"
        private = f"/run/user/{uid}/systemd/private" if self.kind == "user" else "/run/systemd/private"
        wait_for(lambda: os.path.exists(self.root + private), f"systemd --{self.kind}: {self.output()}", give_up=self.exit_reason)
        wait_for(lambda: self.systemctl("is-system-running").stdout.strip() in ("running", "degraded"), f"a manager that is up: {self.output()}",
                 give_up=self.exit_reason)
        return self

    def exit_reason(self):
        return self.process.poll() is not None and f"it exited with {self.process.poll()}: {self.output()}"

    def command(self, *words, user=True):
        become = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"] if user else []
        variables = ["HOME=/home/ada", "USER=ada", f"XDG_RUNTIME_DIR=/run/user/{uid}"] if user else ["HOME=/root"]
        return ["nsenter", "--target", self.init, "--mount", "--cgroup", "--pid", "--ipc", "--uts", "--net", *become,
                "env", "-i", "-C", "/", "PATH=/opt:/usr/bin:/bin", "LC_ALL=C.UTF-8", *variables, *words]

    def run(self, *words, user=True, **more):
        return subprocess.run(self.command(*words, user=user), capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=deadline_s * 8, **more)

    def systemctl(self, *words):
        return self.run("systemctl", "--user", *words) if self.kind == "user" else self.run("systemctl", *words, user=False)

    def show(self, unit, name):
        return self.systemctl("show", "--value", "-p", name, unit).stdout.strip()

    def agent(self):
        agent = Agent(self)
        self.agents.append(agent)
        return agent

    def stop(self):
        for agent in self.agents:
            agent.close()
        self.process.kill()  # the pid namespace ends with it
        self.process.wait()
        self.log.close()
        for folder, _, _ in os.walk(self.cgroup, topdown=False):
            wait_for(lambda: removed(folder), f"an empty {folder}")


def removed(folder):
    try:
        os.rmdir(folder)
    except OSError:
        return False
    return True


class Agent:
    """A Python interpreter in the namespaces, as ada, which acts as the agent program: runs the lines it is given."""

    LOOP = "import sys; sys.path.insert(0, '/opt')\nfrom transcripts import *\nimport subprocess\nfor line in sys.stdin: exec(line); print('done', flush=True)"

    def __init__(self, manager):
        self.process = subprocess.Popen(manager.command("/usr/bin/python3", "-c", self.LOOP), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        if self.process.stdout.readline() != "done\n":
            raise AssertionError(f"the agent failed to run: {line}")

    def close(self):
        self.process.stdin.close()
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class NotifySocketReader:
    """The receiving end of sd_notify."""

    def __init__(self, path):
        self.path, self.messages = path, []
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(path)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        while message := self.socket.recv(4096).decode():
            self.messages += message.split("\n")

    def close(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
            end.sendto(b"", self.path)
        self.reader.join()
        self.socket.close()
