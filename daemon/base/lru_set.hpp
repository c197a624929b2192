// The former name of base/bounded_map.hpp.
#pragma once
#include "base/bounded_map.hpp"

namespace earshot::common {
template <class Value, std::size_t size_max>
using Recent = BoundedMap<Value, size_max>;
}  // namespace earshot::common
