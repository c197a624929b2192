#include "version/version.hpp"

namespace earshot {

extern const std::string_view build_commit;  // in the file that commit.cmake generates

const Build build{
    EARSHOT_VERSION,
    build_commit,
    EARSHOT_BUILD_TYPE,
    EARSHOT_COMPILER,
};

std::string version_text() {
  std::string text(build.version);
  text.append(" (commit ").append(build.commit);
  return text.append(", ").append(build.type).append(", ").append(build.compiler).append(")");
}

}  // namespace earshot
