// Version and commit of this build. Only the file that commit.cmake generates is recompiled for a new commit.
#pragma once
#include <string>
#include <string_view>

namespace earshot {

struct Build {
  std::string_view version;  // 0.1.0
  std::string_view commit;  // 12 hexadecimal digits, with the suffix `-dirty` for changed files; or `unknown`
  std::string_view type;    // Release, Debug, …; `plain` if none was chosen
  std::string_view compiler;  // GNU 12.2.0
};
extern const Build build;

/// What `--version` prints after the program's name: `0.1.0 (commit 0123456789ab, Release, GNU 12.2.0)`.
inline std::string version_text() {
  std::string text(build.version);
  text.append(" (commit ").append(build.commit);
  return text.append(", ").append(build.type).append(", ").append(build.compiler).append(")");
}

}  // namespace earshot
