#include "watch/mounts.hpp"

#include <catch2/catch.hpp>

using earshot::watch::remote_mounts;
using Points = std::vector<std::string>;

TEST_CASE("the innermost mount at or above a path determines its file system") {
  const std::string_view mounts =
      "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
      "30 22 0:40 / /home rw,nosuid shared:5 master:1 - nfs4 server:/home rw,vers=4.2\n"
      "31 30 254:1 / /home/ada/local rw - xfs /dev/vdb rw\n"
      "32 22 0:41 / /mnt/a\\040b rw - fuse.sshfs ada@host:/ rw\n"
      "33 22 0:42 / /over rw - fuse /source rw\n"
      "34 22 0:43 / /over rw - tmpfs none rw\n";
  REQUIRE(remote_mounts(mounts, "/root/.claude").empty());
  REQUIRE(remote_mounts(mounts, "/home/ada/.claude") == Points{"/home"});
  REQUIRE(remote_mounts(mounts, "/home") == Points{"/home"});
  REQUIRE(remote_mounts(mounts, "/home/ada/local/x").empty());
  REQUIRE(remote_mounts(mounts, "/home/ada/locals") == Points{"/home"});
  REQUIRE(remote_mounts(mounts, "/mnt/a b/c") == Points{"/mnt/a b"});
  REQUIRE(remote_mounts(mounts, "/mnt") == Points{"/mnt/a b"});  // it contains one
  REQUIRE(remote_mounts(mounts, "/mnt/a").empty());
  REQUIRE(remote_mounts(mounts, "/over/x").empty());  // the later mount hides the earlier one
}

TEST_CASE("malformed lines of the mount table are ignored") {
  REQUIRE(remote_mounts("", "/a").empty());
  REQUIRE(remote_mounts("1 2 3\n\n - nfs\n22 1 0:1 / / rw nfs x\n", "/a").empty());
  REQUIRE(remote_mounts("22 1 0:1 / / rw - nfs", "/a") == Points{"/"});
}
