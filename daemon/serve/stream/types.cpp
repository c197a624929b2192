#include "serve/stream/types.hpp"

#include <utility>

namespace earshot::serve {

const std::array<std::string_view, event_types>& event_type_names() {
  static const auto names = []<std::size_t... I>(std::index_sequence<I...>) {
    return std::array<std::string_view, event_types>{type_name(EventBody{std::in_place_index<I>})...};
  }
  (std::make_index_sequence<event_types>{});
  return names;
}

}  // namespace earshot::serve
