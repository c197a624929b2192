"""The packages of `./dev package`: contents, lintian, and running the installed programs."""
import glob
import gzip
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "integration"))
from support.harness import TOP, DaemonCase, build, clean_environment, wait_for  # noqa: E402
from support.service_manager import Manager, missing  # noqa: E402
from support.transcripts import Session  # noqa: E402

PACKAGING = os.path.join(TOP, ".ci", "package")
EPOCH = "1763812800"
PAGES = {"earshot": 1, "earshotd": 1, "earshot-notify": 1, "earshot.toml": 5}
PROGRAMS = ["earshot", "earshotd", "earshot-notify"]
SHELLS = {"bash": "share/bash-completion/completions/{}", "zsh": "share/zsh/vendor-completions/_{}",
          "fish": "share/fish/vendor_completions.d/{}.fish"}
COMPLETED = ("earshot", "earshot-notify")


def run(*words, **more):
    return subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300, **more)


def output(*words, **more):
    done = run(*words, **more)
    if done.returncode != 0:
        raise AssertionError(f"{words}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def cpack(generator, folder):
    """The package's file."""
    output("cpack", "--config", os.path.join(build(), "CPackConfig.cmake"), "-G", generator, "-B", folder, cwd=build(),
           env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH})
    return next(path for path in glob.glob(f"{folder}/earshot*") if os.path.isfile(path))


def tree(folder):
    """Every file below a directory, as a relative path."""
    return sorted(os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder) for name in names)


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


class PackageCase(DaemonCase):
    """Builds a package once for all tests of the class."""

    generator = tool = ""

    @classmethod
    def setUpClass(cls):
        cls.missing_tool = next((tool for tool in ("cpack", "strip", cls.tool) if not shutil.which(tool)), None)
        if not cls.missing_tool:
            cls.pack()

    @classmethod
    def pack(cls):
        cls.folder = tempfile.mkdtemp(prefix="earshot-test-", dir="/tmp")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        os.chmod(cls.folder, 0o755)
        cls.package = cpack(cls.generator, os.path.join(cls.folder, "packed"))

    def setUp(self):
        if self.missing_tool:
            self.skipTest(f"{self.missing_tool} is not installed")
        super().setUp()

    def check_daemon(self, prefix):
        """Runs the daemon and the client below this prefix."""
        daemon = self.start(earshotd=os.path.join(prefix, "bin/earshotd"))
        client = daemon.subscriber()
        session = Session(self.root)
        session.turn("hello", answer="packed")
        client.wait_frame(type="turn.finished", session=session.session)
        output_text = output(os.path.join(prefix, "bin/earshot"), "ls", "--state", self.state, env=clean_environment(self.home))
        self.assertIn("packed", output_text)
        self.assertEqual(self.page(daemon), 200)
        daemon.stop()

    def page(self, daemon):
        from support.harness import http
        return http(daemon.port, "GET / HTTP/1.1", f"Host: 127.0.0.1:{daemon.port}", "Connection: close")[0]

    def check_manual(self, manual):
        if not shutil.which("man"):
            self.skipTest("man is not installed")
        for page, section in PAGES.items():
            with self.subTest(page=page):
                done = run("man", "-M", manual, "-E", "UTF-8", "--warnings", "-P", "cat", str(section), page,
                           env={**clean_environment(self.home), "MANWIDTH": "100"})
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertIn(f"{page.upper()}({section})", re.sub(r".\x08", "", done.stdout))
                self.assertIn("DESCRIPTION", re.sub(r".\x08", "", done.stdout))

    def check_versions(self, prefix):
        for program in PROGRAMS:
            there = output(os.path.join(prefix, "bin", program), "--version")
            self.assertEqual(there, output(os.path.join(build(), program), "--version"))


@pytest.mark.xdist_group("Debian")  # in one process, which makes the package once
class Debian(PackageCase):
    generator, tool = "DEB", "dpkg-shlibdeps"

    @classmethod
    def pack(cls):
        super().pack()
        cls.unpacked = os.path.join(cls.folder, "unpacked")
        output("dpkg-deb", "-x", cls.package, cls.unpacked)
        cls.usr = os.path.join(cls.unpacked, "usr")

    def field(self, name):
        return output("dpkg-deb", "-f", self.package, name).strip()

    def test_lintian_reports_nothing(self):
        if not shutil.which("lintian"):
            self.skipTest("lintian is not installed")
        done = run("lintian", "--allow-root", "--no-cfg", "--info", "--fail-on", "error,warning", self.package,
                   env={**clean_environment(self.home), "LC_ALL": "C"})
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)

    def test_each_lintian_override_has_a_reason(self):
        with open(os.path.join(PACKAGING, "lintian-overrides")) as file:
            lines = file.read().splitlines()
        for before, line in zip(["", *lines], lines):
            if line and not line.startswith("#"):
                self.assertRegex(before, r"^(# .{20}|earshot:)", f"an override without a reason: {line}")

    def test_the_control_fields_are_complete(self):
        with open(os.path.join(TOP, "CMakeLists.txt")) as file:
            version = re.search(r"VERSION (\d+\.\d+\.\d+)", file.read())[1]
        self.assertRegex(self.field("Version"), rf"^{re.escape(version)}-\d+$")
        self.assertEqual(os.path.basename(self.package), f"earshot_{self.field('Version')}_{self.field('Architecture')}.deb")
        self.assertRegex(self.field("Maintainer"), r"^[\w ]+ <\S+@\S+>$")
        for library in ("libc6", "libssl3", "libsystemd0", "libspdlog", "libsimdjson"):
            self.assertRegex(self.field("Depends"), rf"(^|, ){library}[\w.-]*( \(>= [^)]+\))?(,|$)")

    def test_the_package_contains_exactly_the_expected_files(self):
        pages = [f"usr/share/man/man{section}/{page}.{section}.gz" for page, section in PAGES.items()]
        units = [f"usr/lib/systemd/user/{name}" for name in ("earshot.service", "earshot.socket", "earshot-notify.service")]
        documents = [f"usr/share/doc/earshot/{name}"
                     for name in ("RECIPES.md", "changelog.Debian.gz", "copyright", "examples/earshot.toml", "examples/notify-defaults.toml")]
        if os.path.exists(os.path.join(build(), "page/LICENSES.txt")):  # licences of the dashboard's dependencies
            documents.append("usr/share/doc/earshot/LICENSES.txt")
        expected = {*(f"usr/bin/{name}" for name in PROGRAMS), *pages, *units, *documents, *(f"usr/{path.format(name)}" for path in SHELLS.values() for name in COMPLETED),
                    "usr/lib/systemd/system/earshot-hub.service", "usr/lib/systemd/system/earshot@.service", "usr/lib/systemd/system/earshot@.socket", "usr/share/lintian/overrides/earshot"}
        found = set(tree(self.unpacked))
        self.assertEqual(found, expected)
        listed = output("dpkg-deb", "-c", self.package)
        for line in listed.splitlines():
            self.assertRegex(line, r"^(drwxr-xr-x|-rwxr-xr-x|-rw-r--r--) root/root ")

    def test_programs_are_stripped_and_hardened_without_build_paths(self):
        for program in PROGRAMS:
            path = os.path.join(self.usr, "bin", program)
            output_text = output("readelf", "--wide", "--file-header", "--segments", "--dynamic", "--section-headers", path)
            for word in ("DYN (Position-Independent Executable file)", "GNU_RELRO", "BIND_NOW"):
                self.assertIn(word, output_text)
            for word in (".symtab", ".debug_info", "RPATH", "RUNPATH"):
                self.assertNotIn(word, output_text)
            self.assertIn("__stack_chk_fail", output("readelf", "--wide", "--dyn-syms", path))
            with open(path, "rb") as file:
                self.assertNotIn(TOP.encode(), file.read())

    def test_units_name_the_installed_programs_and_are_valid(self):
        units = glob.glob(f"{self.usr}/lib/systemd/*/*")
        self.assertGreaterEqual(len(units), 3)
        for unit in units:
            source = os.path.join(TOP, "systemd", os.path.relpath(unit, f"{self.usr}/lib/systemd"))
            with open(unit) as file, open(source) as same:
                text = file.read()
                self.assertEqual(text, same.read())
            copy = os.path.join(self.home, os.path.basename(unit))
            with open(copy, "w") as file:
                file.write(text.replace("/usr/bin/earshot", f"{self.usr}/bin/earshot"))
        if not shutil.which("systemd-analyze"):
            self.skipTest("systemd-analyze is not installed")
        env = {**clean_environment(self.home), "XDG_RUNTIME_DIR": self.home, "SYSTEMD_LOG_LEVEL": "warning"}
        for unit in units:
            others = {"earshot.service", "earshot.socket"} if "/user/" in unit else {"earshot@.service", "earshot@.socket"}
            names = [os.path.join(self.home, name) for name in sorted({os.path.basename(unit), *others} if "/user/" in unit else others)]
            scope = ["--user"] if "/user/" in unit else []
            done = run("systemd-analyze", "verify", "--man=no", "--recursive-errors=one", *scope, *names, env=env)
            self.assertEqual((done.returncode, done.stderr), (0, ""), unit)  # also verifies that the program exists

    def test_systemctl_enable_works_in_an_alternative_root(self):
        if not shutil.which("systemctl"):
            self.skipTest("systemctl is not installed")
        root = os.path.join(self.home, "root")
        shutil.copytree(self.unpacked, root)
        output("systemctl", "--root", root, "--global", "enable", "earshot.service")
        link = os.path.join(root, "etc/systemd/user/default.target.wants/earshot.service")
        self.assertEqual(os.readlink(link), "/usr/lib/systemd/user/earshot.service")

    def test_installing_starts_nothing_and_prints_one_hint(self):
        if os.geteuid() != 0:
            self.skipTest("dpkg installs only for root")
        root = os.path.join(self.home, "root")
        for folder in ("var/lib/dpkg/info", "var/lib/dpkg/updates"):
            os.makedirs(os.path.join(root, folder))
        open(os.path.join(root, "var/lib/dpkg/status"), "w").close()
        before = tree(root)
        dpkg = ("dpkg", f"--root={root}", "--force-script-chrootless", "--force-depends", "--no-triggers")
        dpkg_output = output(*dpkg, "--install", self.package, env={**os.environ, "LC_ALL": "C"})
        hints = [line for line in dpkg_output.splitlines() if line.startswith("earshot:")]
        self.assertEqual(hints, ["earshot: not started. To start it for your user: systemctl --user enable --now earshot.service"])
        files = [path for path in tree(root) if not path.startswith("var/lib/dpkg/")]
        self.assertEqual(files, tree(self.unpacked))
        again = output(*dpkg, "--install", self.package, env={**os.environ, "LC_ALL": "C"})
        self.assertRegex(again, r"(?m)^earshot: running daemons still use the old version.*try-restart")
        self.check_daemon(os.path.join(root, "usr"))
        output(*dpkg, "--purge", "earshot")
        self.assertEqual([path for path in tree(root) if not path.startswith("var/lib/dpkg/")], [])
        self.assertEqual([path for path in before if path not in tree(root)], [])

    def test_the_packaged_programs_are_this_build(self):
        self.check_versions(self.usr)

    def test_every_manual_page_is_displayed(self):
        self.check_manual(os.path.join(self.usr, "share/man"))

    def test_the_changelog_matches_the_version(self):
        with gzip.open(os.path.join(self.usr, "share/doc/earshot/changelog.Debian.gz"), "rt") as file:
            self.assertRegex(file.readline(), rf"^earshot \({re.escape(self.field('Version'))}\) \w+; urgency=\w+$")

    def test_the_example_configuration_is_valid(self):
        self.start("--config", os.path.join(self.usr, "share/doc/earshot/examples/earshot.toml")).stop()

    def test_packaging_is_reproducible(self):
        self.assertEqual(digest(cpack("DEB", os.path.join(self.home, "again"))), digest(self.package))

    def test_shells_load_their_completions(self):
        for name, typed, expected in (("earshot", "stat", "status"), ("earshot-notify", "che", "check")):
            paths = {shell: os.path.join(self.usr, path.format(name)) for shell, path in SHELLS.items()}
            load = {
                "bash": ["--norc", "-c", f"source '{paths['bash']}'; COMP_WORDS=({name} {typed}); COMP_CWORD=1; _{name}; echo \"${{COMPREPLY[@]}}\""],
                "zsh": ["-f", "-c", f"fpath=('{os.path.dirname(paths['zsh'])}' $fpath); autoload -U compinit; compinit -D -u; echo $_comps[{name}]"],
                "fish": ["--no-config", "-c", f"source '{paths['fish']}'; complete -C '{name} {typed}'"],
            }
            for shell, words in load.items():
                if not shutil.which(shell):
                    print(f"        {shell} is not installed: its completions are not loaded", flush=True)
                    continue
                with self.subTest(shell=shell, program=name):
                    done = run(shell, *words, env={**clean_environment(self.home), "PATH": f"{self.usr}/bin:{os.environ['PATH']}"})
                    word = f"_{name}" if shell == "zsh" else expected
                    self.assertEqual((done.returncode, done.stdout.split()[:1], done.stderr), (0, [word], ""))

    def test_the_user_manager_runs_the_installed_unit(self):
        if reason := missing():
            self.skipTest(f"systemd cannot run here: {reason}")
        manager = Manager("user", self.unpacked, self.home)
        self.addCleanup(manager.stop)
        if not manager.prepared():
            self.skipTest(f"this machine does not allow the namespaces: {manager.output()}")
        manager.wait_up()
        # Overlays the package's files on /usr, for this manager only.
        overlay = manager.run("mount", "-t", "overlay", "overlay", "-o", "lowerdir=/opt/units/usr:/usr", "/usr", user=False)
        if overlay.returncode != 0:
            self.skipTest(f"overlay mounts are not available: {overlay.stderr}")
        done = manager.systemctl("enable", "--now", "earshot.service")
        why = manager.systemctl("status", "--no-pager", "earshot.service").stdout + manager.output()
        self.assertEqual(done.returncode, 0, done.stderr + why)
        self.assertEqual(manager.show("earshot.service", "FragmentPath"), "/usr/lib/systemd/user/earshot.service")
        self.assertEqual(manager.show("earshot.service", "ActiveState"), "active", why)
        session = "0a0a0a0a-0000-4000-8000-000000000003"
        manager.agent().run(f"Session('/home/ada/.claude', session='{session}').turn('hello', answer='from the package')")
        output_text = lambda: manager.run("/usr/bin/earshot", "ls").stdout
        wait_for(lambda: "from the package" in output_text(), f"the session; now: {output_text()}")
        self.assertEqual(manager.systemctl("disable", "--now", "earshot.service").returncode, 0)
        self.assertEqual(manager.show("earshot.service", "ActiveState"), "inactive")


@pytest.mark.xdist_group("Tarball")
class Tarball(PackageCase):
    generator, tool = "TGZ", "tar"

    @classmethod
    def pack(cls):
        super().pack()
        cls.place = os.path.join(cls.folder, "any where", "at all")
        os.makedirs(cls.place)
        output("tar", "-xf", cls.package, "-C", cls.place)
        cls.prefix = os.path.join(cls.place, os.listdir(cls.place)[0])

    def test_the_tarball_is_one_directory_with_instructions(self):
        self.assertEqual(os.listdir(self.place), [os.path.basename(self.package).removesuffix(".tar.gz")])
        self.assertRegex(os.path.basename(self.package), r"^earshot-\d+\.\d+\.\d+-\w+-\w+\.tar\.gz$")
        documents = os.path.join(self.prefix, "share/doc/earshot")
        self.assertLessEqual({"INSTALL.md", "LICENSE", "RECIPES.md", "examples/earshot.toml"}, set(tree(documents)))

    def test_the_programs_run_from_any_directory(self):
        self.check_daemon(self.prefix)
        self.check_versions(self.prefix)

    def test_every_manual_page_is_displayed(self):
        self.check_manual(os.path.join(self.prefix, "share/man"))

    def test_the_units_are_for_usr_local(self):
        units = glob.glob(f"{self.prefix}/lib/systemd/*/*.service")
        self.assertGreaterEqual(len(units), 2)
        for unit in units:
            with open(unit) as file:
                self.assertRegex(file.read(), r"(?m)^ExecStart=/usr/local/bin/earshot")
        if shutil.which("systemd-analyze"):
            for scope, kind in (("--user", "user"), ("--system", "system")):
                self.assertIn(f"/usr/local/lib/systemd/{kind}", output("systemd-analyze", scope, "unit-paths", env={**os.environ, "HOME": self.home}))

    def test_the_daemon_installs_its_service_from_any_directory(self):
        done = run(os.path.join(self.prefix, "bin/earshotd"), "--install-service", env={**clean_environment(self.home), "PATH": self.home})
        self.assertEqual(done.returncode, 3, done)  # without a service manager the commands are printed
        with open(os.path.join(self.home, ".config/systemd/user/earshot.service")) as file:
            self.assertIn(f'\nExecStart="{self.prefix}/bin/earshotd"\n', file.read())

    def test_packaging_is_reproducible(self):
        self.assertEqual(digest(cpack("TGZ", os.path.join(self.home, "again"))), digest(self.package))


class Homebrew(unittest.TestCase):
    formula = os.path.join(PACKAGING, "earshot.rb")
    # Stubs of Homebrew's DSL, to evaluate the formula without Homebrew.
    STUBS = r"""
      class Formula
        def self.method_missing(name, *words, **more, &block)
          puts "#{name} #{[*words, *more.flatten].join(" ")}"
          class_eval(&block) if name == :service && block
        end
        def self.respond_to_missing?(*) = true
        class << self
          %i[test].each { |name| define_method(name) { |*words, &block| puts name } }
          %i[opt_bin var].each { |name| define_method(name) { Place.new(name.to_s) } }
        end
        def std_cmake_args = ["-DCMAKE_INSTALL_PREFIX=/prefix"]
        def system(*words) = puts("system #{words.join(" ")}")
      end
      class Place < String
        def /(other) = Place.new("#{self}/#{other}")
      end
      require ARGV[0]
      Earshot.new.install
    """

    def formula_calls(self):
        if not shutil.which("ruby"):
            self.skipTest("ruby is not installed")
        return output("ruby", "-e", self.STUBS, self.formula)

    def test_the_formula_is_valid_ruby(self):
        if not shutil.which("ruby"):
            self.skipTest("ruby is not installed")
        self.assertEqual(output("ruby", "-wc", self.formula), "Syntax OK\n")

    def test_the_formula_depends_on_the_packages_of_dev(self):
        with open(os.path.join(TOP, "dev")) as file:
            packages = re.search(r'^brew_packages="([^"]*)"', file.read(), re.MULTILINE)[1].split()
        found = re.findall(r"^depends_on (\S+)", self.formula_calls(), re.MULTILINE)
        self.assertEqual(sorted(found), sorted(packages))

    def test_the_formula_uses_existing_targets(self):
        output_text = self.formula_calls()
        target = re.search(r"--target (\w+)", output_text)[1]
        self.assertIn(f"{target}: phony", output("ninja", "-C", build(), "-t", "targets", "all"))
        self.assertIn("system cmake --install build", output_text)
        self.assertIn("run opt_bin/earshotd", output_text)


if __name__ == "__main__":
    unittest.main()
