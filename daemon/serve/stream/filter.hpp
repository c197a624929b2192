#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace earshot::serve {

/// Lists are ORed in a key, keys are ANDed; an empty list asks nothing. `*` and `?` only, both also match
/// `/`.
struct Filter {
  static constexpr std::size_t patterns_max = 64;        // a key; more: `bad_filter`
  static constexpr std::size_t pattern_bytes_max = 256;  // longer: `bad_filter`

  std::vector<std::string> project, session, host, type;

  bool empty() const { return project.empty() && session.empty() && host.empty() && type.empty(); }
  bool matches_session(std::string_view host_name, std::string_view session_name,
                       std::string_view project_name) const;
  bool matches_type(std::string_view type_name) const;
};

/// `?` is one character (a UTF-8 sequence), `*` any number of them. At most pattern × text steps: it
/// remembers only the last star, because whatever an earlier star could still try, the last one can.
bool glob(std::string_view pattern, std::string_view text);

}  // namespace earshot::serve
