// The only place that knows an agent program's JSON.
#pragma once
#include <string_view>

#include "base/json_dom.hpp"
#include "core/record.hpp"

namespace earshot {

/// How one era of one agent program writes records. Stateless: reading a record changes nothing.
class Dialect {
 public:
  virtual ~Dialect() = default;
  virtual std::string_view name() const = 0;
  /// `raw` is the record's text, from which `json` was parsed; inputs of calls are pieces of it.
  virtual void read(const dom::element& json, std::string_view raw, Record& out) const = 0;
};

/// The dialect that this record shows, or null if it shows none. Metadata of a known dialect decides nothing.
const Dialect* dialect_of(const dom::element& json);

/// Events of other daemons, as they were published. Never guessed: who reads such a file knows it.
const Dialect& dialect_of_told();

/// Reads what stands before the record that decides, where that is metadata; null: it is none.
const Dialect* dialect_of_metadata(const dom::element& json);

}  // namespace earshot
