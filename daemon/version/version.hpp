// What this build is. The one file that changes with every commit is compiled alone (commit.cmake makes it).
#pragma once
#include <string>
#include <string_view>

namespace earshot {

struct Build {
  std::string_view version;  // 0.1.0
  std::string_view
      commit;  // 12 hexadecimal digits, `-dirty` behind them where files were changed; or `unknown`
  std::string_view type;      // Release, Debug, …; `plain` where nobody chose one
  std::string_view compiler;  // GNU 12.2.0
};
extern const Build build;

/// What `--version` prints behind the program's name: `0.1.0 (commit 0123456789ab, Release, GNU 12.2.0)`.
std::string version_text();

}  // namespace earshot
