// The interface through which a transcript reads the records of one agent program.
#pragma once
#include <string_view>

#include "base/json_dom.hpp"
#include "core/record.hpp"

namespace earshot {

/// One era of one program's record format. Stateless and thread-safe.
class Dialect {
 public:
  virtual ~Dialect() = default;
  /// As in session.started; empty where the records themselves name it.
  virtual std::string_view name() const = 0;
  /// `raw` is the text that `json` was parsed from. Views in `out` may point into both.
  virtual void read(const dom::element& json, std::string_view raw, Record& out) const = 0;
};

/// Selects the dialect of a transcript. Stateless and thread-safe; outlives the transcripts that use it.
class RecordReader {
 public:
  virtual ~RecordReader() = default;
  /// The agent program, as on the wire (`claude-code`); empty where the records themselves name it.
  virtual std::string_view program() const = 0;
  /// The dialect that this record proves; null if it proves none. Asked until a record proves one.
  virtual const Dialect* detect(const dom::element& json) const = 0;
  /// Reads metadata before the first record that proves a dialect; null if this record is no such metadata.
  virtual const Dialect* metadata_dialect(const dom::element& json) const = 0;
};

}  // namespace earshot
