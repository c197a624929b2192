"""--version names the built commit, and a new commit recompiles one file only."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(TOP, "build", "release")
SCRIPT = os.path.join(TOP, "daemon/version/commit.cmake")


def run(*command, cwd=None, **variables):
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, cwd=cwd, env={**os.environ, **variables})
    if done.returncode != 0:
        raise AssertionError(f"{command}: {done.stdout}{done.stderr}")
    return done.stdout


def recorded(source):
    return re.search(r'build\{"[^"]*", "([^"]*)"', source)[1]


class Commit(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="earshot-test-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.folder)
        self.source, self.file = os.path.join(self.folder, "source"), os.path.join(self.folder, "commit.cpp")
        self.version_folder = os.path.join(self.source, "daemon/version")
        os.makedirs(self.version_folder)
        shutil.copy(SCRIPT, self.version_folder)
        shutil.copy(os.path.join(TOP, ".gitattributes"), self.source)

    def git(self, *command):
        return run("git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main", *command, cwd=self.source,
                   GIT_CONFIG_NOSYSTEM="1", HOME=self.folder).strip()

    def repository(self):
        if not shutil.which("git"):
            self.skipTest("git is not installed")
        self.git("init", "-q")
        self.commit()

    def commit(self):
        self.git("add", ".")
        self.git("commit", "-q", "--allow-empty", "-m", "work")

    def recorded_commit(self, source=None):
        source = source or self.source
        run("cmake", "-D", f"SOURCE={source}", "-D", f"FILE={self.file}", "-P", os.path.join(source, "daemon/version/commit.cmake"), HOME=self.folder)
        with open(self.file) as file:
            return recorded(file.read())

    def test_the_checked_out_commit_is_recorded_and_changes_are_marked(self):
        self.repository()
        head = self.git("rev-parse", "HEAD")
        self.assertEqual(self.recorded_commit(), head[:12])
        with open(SCRIPT) as file, open(os.path.join(self.version_folder, "commit.cmake"), "w") as copy:
            copy.write(file.read() + "\n")
        self.assertEqual(self.recorded_commit(), head[:12] + "-dirty")
        self.commit()
        self.assertEqual(self.recorded_commit(), self.git("rev-parse", "HEAD")[:12])

    def test_the_file_is_not_rewritten_without_a_change(self):
        self.repository()
        self.recorded_commit()
        os.utime(self.file, (1, 1))
        self.recorded_commit()
        self.assertEqual(os.stat(self.file).st_mtime, 1)
        self.commit()
        self.recorded_commit()
        self.assertNotEqual(os.stat(self.file).st_mtime, 1)

    def test_an_archive_of_the_sources_contains_the_commit(self):
        self.repository()
        exported = os.path.join(self.folder, "exported")
        os.mkdir(exported)
        self.git("archive", "-o", "../archive.tar", "HEAD")
        run("tar", "-xf", os.path.join(self.folder, "archive.tar"), "-C", exported)
        self.assertEqual(self.recorded_commit(exported), self.git("rev-parse", "HEAD")[:12])

    def test_without_its_own_repository_the_commit_is_unknown(self):
        self.assertEqual(self.recorded_commit(), "unknown")
        self.repository()
        inner = os.path.join(self.source, "nested")
        shutil.copytree(self.version_folder, os.path.join(inner, "daemon/version"))
        self.assertEqual(self.recorded_commit(inner), "unknown")


class Programs(unittest.TestCase):
    def test_version_prints_version_commit_build_type_and_compiler_on_one_line(self):
        with open(os.path.join(TOP, "CMakeLists.txt")) as file:
            version = re.search(r"VERSION (\d+\.\d+\.\d+)", file.read())[1]
        with open(os.path.join(BUILD, "daemon/version/commit.cpp")) as file:
            commit = recorded(file.read())
        for name in ("earshot", "earshotd", "earshot-notify"):
            output = run(os.path.join(BUILD, name), "--version")
            self.assertRegex(output, rf"^{name} {re.escape(version)} \(commit {commit}, Release, \w+ [\d.]+\)\n$")


if __name__ == "__main__":
    unittest.main()
