"""What --version tells: which commit was built, and that knowing it costs next to nothing."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(TOP, "build", "release")
SCRIPT = os.path.join(TOP, "daemon/version/commit.cmake")


def run(*words, cwd=None, **variables):
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, cwd=cwd, env={**os.environ, **variables})
    if done.returncode != 0:
        raise AssertionError(f"{words}: {done.stdout}{done.stderr}")
    return done.stdout


class Commit(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="earshot-test-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.folder)
        self.source, self.file = os.path.join(self.folder, "source"), os.path.join(self.folder, "commit.cpp")
        self.there = os.path.join(self.source, "daemon/version")
        os.makedirs(self.there)
        shutil.copy(SCRIPT, self.there)
        shutil.copy(os.path.join(TOP, ".gitattributes"), self.source)

    def git(self, *words):
        return run("git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main", *words, cwd=self.source,
                   GIT_CONFIG_NOSYSTEM="1", HOME=self.folder).strip()

    def repository(self):
        if not shutil.which("git"):
            self.skipTest("git is not here")
        self.git("init", "-q")
        self.commit()

    def commit(self):
        self.git("add", ".")
        self.git("commit", "-q", "--allow-empty", "-m", "work")

    def told(self, source=None):
        source = source or self.source
        run("cmake", "-D", f"SOURCE={source}", "-D", f"FILE={self.file}", "-P", os.path.join(source, "daemon/version/commit.cmake"), HOME=self.folder)
        with open(self.file) as file:
            return re.search(r'"(.*)"', file.read())[1]

    def test_it_is_the_one_that_is_checked_out_and_changes_show(self):
        self.repository()
        head = self.git("rev-parse", "HEAD")
        self.assertEqual(self.told(), head[:12])
        with open(SCRIPT) as file, open(os.path.join(self.there, "commit.cmake"), "w") as copy:
            copy.write(file.read() + "\n")
        self.assertEqual(self.told(), head[:12] + "-dirty")
        self.commit()
        self.assertEqual(self.told(), self.git("rev-parse", "HEAD")[:12])

    def test_the_file_is_left_alone_while_nothing_changes(self):
        self.repository()
        self.told()
        os.utime(self.file, (1, 1))
        self.told()
        self.assertEqual(os.stat(self.file).st_mtime, 1)
        self.commit()
        self.told()
        self.assertNotEqual(os.stat(self.file).st_mtime, 1)

    def test_an_archive_of_the_sources_carries_it(self):
        self.repository()
        exported = os.path.join(self.folder, "exported")
        os.mkdir(exported)
        self.git("archive", "-o", "../archive.tar", "HEAD")
        run("tar", "-xf", os.path.join(self.folder, "archive.tar"), "-C", exported)
        self.assertEqual(self.told(exported), self.git("rev-parse", "HEAD")[:12])

    def test_without_a_repository_or_inside_another_one_it_is_unknown(self):
        self.assertEqual(self.told(), "unknown")
        self.repository()
        inner = os.path.join(self.source, "cellar")
        shutil.copytree(self.there, os.path.join(inner, "daemon/version"))
        self.assertEqual(self.told(inner), "unknown")


class Programs(unittest.TestCase):
    def test_each_says_version_commit_build_type_and_compiler_in_one_line(self):
        with open(os.path.join(TOP, "CMakeLists.txt")) as file:
            version = re.search(r"VERSION (\d+\.\d+\.\d+)", file.read())[1]
        with open(os.path.join(BUILD, "daemon/version/commit.cpp")) as file:
            commit = re.search(r'"(.*)"', file.read())[1]
        for name in ("earshot", "earshotd", "earshot-notify"):
            told = run(os.path.join(BUILD, name), "--version")
            self.assertRegex(told, rf"^{name} {re.escape(version)} \(commit {commit}, Release, \w+ [\d.]+\)\n$")

    def test_a_commit_compiles_one_file_only(self):
        if not shutil.which("ninja"):
            self.skipTest("ninja is not here")
        asked = run("ninja", "-C", BUILD, "-t", "query", os.path.join(BUILD, "daemon/version/commit.cpp"))
        users = re.findall(r"^    (\S+)", asked[asked.index("  outputs:"):], re.MULTILINE)
        compiled = [name for name in users if name.endswith(".o")]
        self.assertEqual(len(compiled), 1, asked)


if __name__ == "__main__":
    unittest.main()
