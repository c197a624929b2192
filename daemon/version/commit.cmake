# Writes FILE, which says what commit SOURCE is, if that is not what it says already: nothing is compiled in vain.
# `git archive` puts the commit in here, see .gitattributes: sources without a repository know theirs, too.
set(archived "$Format:%H$")
set(commit unknown)
if(archived MATCHES "^[0-9a-f]+$")
  string(SUBSTRING "${archived}" 0 12 commit)
else()
  # A prefix means that somebody else's repository is around these sources.
  execute_process(COMMAND git -C "${SOURCE}" rev-parse --show-prefix OUTPUT_VARIABLE prefix RESULT_VARIABLE failed
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(failed STREQUAL "0" AND prefix STREQUAL "")
    execute_process(COMMAND git --no-optional-locks -C "${SOURCE}" describe --always --dirty --abbrev=12 --exclude=*
                    OUTPUT_VARIABLE described RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(failed STREQUAL "0" AND described MATCHES "^[0-9a-f]+(-dirty)?$")
      set(commit "${described}")
    endif()
  endif()
endif()

set(text "// Made by commit.cmake.
#include <string_view>

namespace earshot {
extern const std::string_view build_commit;
const std::string_view build_commit = \"${commit}\";
}  // namespace earshot
")
set(before "")
if(EXISTS "${FILE}")
  file(READ "${FILE}" before)
endif()
if(NOT text STREQUAL before)
  file(WRITE "${FILE}" "${text}")
endif()
