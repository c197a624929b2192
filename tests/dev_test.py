"""./dev: its commands, the packages it installs, and when it configures again."""
import os
import re
import shutil
import stat
import subprocess
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COMMANDS = ("deps", "build", "package", "run", "demo", "team-demo", "test", "bench", "fuzz", "mutants", "lint", "help")


class Dev(unittest.TestCase):
    def setUp(self):
        self.bin = tempfile.mkdtemp(prefix="earshot-dev-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.bin)
        self.log = os.path.join(self.bin, "log")

    def fake(self, name, script):
        path = os.path.join(self.bin, name)
        with open(path, "w") as file:
            file.write(f'#!/bin/sh\n{script}\n')
        os.chmod(path, stat.S_IRWXU)

    def dev(self, *args, cwd="/"):
        return subprocess.run([os.path.join(TOP, "dev"), *args], capture_output=True, text=True, cwd=cwd,
                              env={"PATH": f"{self.bin}:/usr/local/bin:/usr/bin:/bin", "HOME": self.bin})

    def logged(self):
        if not os.path.exists(self.log):
            return []
        with open(self.log) as file:
            return file.read().splitlines()

    def machine(self, installed, user):
        """A machine with these packages; commands that would change it are logged."""
        self.fake("uname", "echo Linux")
        self.fake("id", f"echo {user}")
        self.fake("dpkg-query", 'for p in "$@"; do case " %s " in *" $p "*) printf "/$p/installed/ ";; esac; done; exit 1' % " ".join(installed))
        self.fake("apt-get", f'echo "apt-get $*" >>{self.log}')
        self.fake("sudo", f'echo "sudo" >>{self.log}; exec "$@"')

    def packages(self):
        with open(os.path.join(TOP, "dev")) as file:
            text = file.read()
        lists = re.findall(r'^(?:build|test)_packages="([^"]*)"', text, re.MULTILINE)
        self.assertEqual(len(lists), 2)
        return " ".join(lists).split()

    def test_help_names_every_command(self):
        done = self.dev("help")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(re.findall(r"^  ([\w-]+)", done.stdout, re.MULTILINE), list(COMMANDS))
        self.assertEqual(self.dev().stdout, done.stdout)

    def test_an_unknown_command_is_refused(self):
        done = self.dev("dance")
        self.assertEqual(done.returncode, 1)
        self.assertIn("dance", done.stderr)

    def test_deps_installs_exactly_the_missing_packages(self):
        wanted = self.packages()
        self.machine(installed=[p for p in wanted if p not in ("cmake", "python3-websockets")], user=0)
        done = self.dev("deps")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("installing: cmake python3-websockets", done.stderr)
        self.assertEqual(self.logged(), ["apt-get update -qq", "apt-get install -y -qq --no-install-recommends cmake python3-websockets"])

    def test_deps_prints_nothing_when_everything_is_installed(self):
        self.machine(installed=self.packages(), user=1000)
        done = self.dev("deps")
        self.assertEqual((done.returncode, done.stdout, done.stderr, self.logged()), (0, "", "", []))

    def test_deps_uses_sudo_when_not_root(self):
        self.machine(installed=self.packages()[1:], user=1000)
        self.assertEqual(self.dev("deps").returncode, 0)
        self.assertEqual(self.logged()[::2], ["sudo", "sudo"])

    def test_shellcheck_reports_nothing(self):
        if not shutil.which("shellcheck"):
            self.skipTest("shellcheck is not installed")
        checked = subprocess.run(["shellcheck", os.path.join(TOP, "dev"), os.path.join(TOP, ".ci", "run")], capture_output=True, text=True)
        self.assertEqual(checked.stdout, "")


CMAKE = 'echo "configure${3:+ }${3:-}" >>"$LOG"; mkdir -p build/release; : >build/release/build.ninja'


class Configure(unittest.TestCase):
    """Fault 106: ./dev build in a copy of the tree's outline, with only the listed tools in PATH."""

    UTILITIES = ("sh", "dirname", "cat", "cut", "sha256sum", "mkdir", "env")

    def setUp(self):
        self.top = tempfile.mkdtemp(prefix="earshot-dev-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.top)
        self.bin, self.log = os.path.join(self.top, "bin"), os.path.join(self.top, "log")
        os.mkdir(self.bin)
        for name in self.UTILITIES:
            os.symlink(shutil.which(name), os.path.join(self.bin, name))
        for part in ("sdk", "dashboard"):
            os.makedirs(os.path.join(self.top, "clients", part))
            with open(os.path.join(self.top, "clients", part, "package-lock.json"), "w") as file:
                file.write("{}")
        shutil.copy(os.path.join(TOP, "dev"), self.top)
        self.tool("uname", "echo Linux")
        self.tool("getconf", "echo 1")
        self.tool("cmake", CMAKE)
        self.tool("ninja", 'echo build >>"$LOG"')

    def tool(self, name, script="exit 0"):
        path = os.path.join(self.bin, name)
        with open(path, "w") as file:
            file.write(f"#!/bin/sh\n{script}\n")
        os.chmod(path, stat.S_IRWXU)

    def build(self):
        """Runs ./dev build; returns the steps."""
        open(self.log, "w").close()
        done = subprocess.run([os.path.join(self.top, "dev"), "build"], capture_output=True, text=True, env={"PATH": self.bin, "LOG": self.log})
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.log) as file:
            return file.read().splitlines()

    def test_a_new_tool_configures_the_build_again(self):
        self.assertEqual(self.build(), ["configure --fresh", "build"])
        self.assertEqual(self.build(), ["build"])
        self.tool("dpkg-shlibdeps")
        self.assertEqual(self.build(), ["configure", "build"])
        self.assertEqual(self.build(), ["build"])
        self.tool("node")
        self.tool("npm", 'mkdir -p node_modules; echo modules >>"$LOG"')
        self.assertEqual(self.build(), ["modules", "modules", "configure", "build"])
        self.assertEqual(self.build(), ["build"])
        self.tool("node", "echo v20.1.0")
        self.assertEqual(self.build(), ["configure", "build"])
        self.assertEqual(self.build(), ["build"])

    def test_packages_are_fetched_again_after_a_failure_and_for_a_new_lock_file(self):
        self.tool("node")
        self.tool("npm", 'mkdir -p node_modules; echo failed >>"$LOG"; exit 1')
        self.assertEqual(self.build(), ["failed", "failed", "configure --fresh", "build"])
        self.tool("npm", 'mkdir -p node_modules; echo modules >>"$LOG"')
        self.assertEqual(self.build(), ["modules", "modules", "configure", "build"])
        with open(os.path.join(self.top, "clients", "dashboard", "package-lock.json"), "w") as file:
            file.write('{"lockfileVersion": 3}')
        self.assertEqual(self.build(), ["modules", "configure", "build"])

    def test_a_failed_configuration_is_repeated(self):
        self.tool("cmake", "exit 1")
        done = subprocess.run([os.path.join(self.top, "dev"), "build"], capture_output=True, text=True, env={"PATH": self.bin, "LOG": self.log})
        self.assertNotEqual(done.returncode, 0)
        self.tool("cmake", CMAKE)
        self.assertEqual(self.build(), ["configure --fresh", "build"])


@unittest.skipUnless(shutil.which("cmake") and shutil.which("ninja"), "cmake and ninja are not installed")
class Page(unittest.TestCase):
    """Fault 106: page.cmake builds the dashboard again when its sources, Node or the npm packages change. Node and npm are scripts."""

    SOURCES = ("clients/dashboard/src/main.tsx", "clients/dashboard/index.html", "clients/dashboard/vite.config.ts", "clients/dashboard/tsconfig.json",
               "clients/dashboard/package-lock.json", "clients/sdk/src/client.ts", "clients/sdk/src/node/index.ts")

    def setUp(self):
        self.top = tempfile.mkdtemp(prefix="earshot-dev-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.top)
        self.log = os.path.join(self.top, "log")
        for name in self.SOURCES:
            self.write(name, "{}")
        shutil.copy(os.path.join(TOP, "clients", "dashboard", "page.cmake"), os.path.join(self.top, "clients", "dashboard"))
        self.write("CMakeLists.txt", "cmake_minimum_required(VERSION 3.25)\nproject(page NONE)\ninclude(clients/dashboard/page.cmake)\n"
                                     "add_custom_target(page ALL DEPENDS ${EARSHOT_PAGE_FILES})\n")
        self.node(18)
        self.tool("npm", f"mkdir -p node_modules; echo modules >>{self.log}")

    def write(self, name, text):
        path = os.path.join(self.top, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        built = os.path.join(self.top, "build", "page", "app.js")
        while True:  # until it is newer than the page, whatever the resolution of the file system
            with open(path, "w") as file:
                file.write(text)
            if not os.path.exists(built) or os.stat(path).st_mtime_ns > os.stat(built).st_mtime_ns:
                return path

    def tool(self, name, script):
        os.chmod(self.write(f"bin/{name}", f"#!/bin/sh\n{script}\n"), stat.S_IRWXU)

    def node(self, version):
        self.tool("node", f'[ "$1" = -p ] && echo {version}.1.0 && exit\necho page >>{self.log}; mkdir -p $EARSHOT_PAGE_OUT\n'
                          "for name in index.html app.js session.js highlight.js style.css; do echo x >$EARSHOT_PAGE_OUT/$name; done")

    def build(self, configure=False):
        open(self.log, "w").close()
        environment = {"PATH": f"{self.top}/bin:/usr/local/bin:/usr/bin:/bin", "HOME": self.top}
        commands = [["cmake", "-S", self.top, "-B", f"{self.top}/build", "-G", "Ninja"]] if configure else []
        for command in [*commands, ["cmake", "--build", f"{self.top}/build"]]:
            done = subprocess.run(command, capture_output=True, text=True, env=environment)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with open(self.log) as file:
            return file.read().split()

    def test_the_dashboard_is_built_when_its_sources_or_tools_change(self):
        self.assertEqual(self.build(configure=True), ["modules", "page"])
        self.assertEqual(self.build(), [])
        for name in ("clients/dashboard/src/main.tsx", "clients/dashboard/src/new.css", "clients/sdk/src/client.ts", "clients/dashboard/vite.config.ts"):
            self.write(name, "changed")
            self.assertEqual(self.build(), ["page"], name)
            self.assertEqual(self.build(), [], name)
        self.write("clients/dashboard/package-lock.json", "changed")
        self.assertEqual(self.build(), ["modules", "page"])
        self.node(20)
        self.assertEqual(self.build(configure=True), ["page"])
        self.assertEqual(self.build(configure=True), [])


if __name__ == "__main__":
    unittest.main()
