// The interface through which a transcript reads the records of one agent program.
#pragma once
#include <cstddef>
#include <memory>
#include <string_view>

#include "core/assembler.hpp"
#include "core/line_value.hpp"
#include "core/nested_json.hpp"

namespace earshot {

/// One era of a program's record format, known by its address.
struct Dialect {
  std::string_view name;  // as in session.started; empty where the records themselves name it
};

/// Records that are read before it is their turn.
class RecordsAhead {
 public:
  virtual ~RecordsAhead() = default;
  /// From any thread. Replaces record `number`, which may have views into `json`.
  virtual void read(std::size_t number, const Value& json, const Dialect& dialect) = 0;
};

/// Reads the records of one transcript in their order, and keeps what their meaning depends on. Total:
/// accepts any record in any order, never throws for content.
class RecordReader {
 public:
  virtual ~RecordReader() = default;
  /// `json` is an object.
  virtual void read(const Value& /*json*/, NestedJson&, Assembler&) {}
  /// For a format with make_ahead(), instead of read(): its record `number`.
  virtual void assemble(RecordsAhead&, std::size_t, Assembler&) {}
  virtual std::size_t memory_bytes() const = 0;
};

/// The record format of one program. Stateless and thread-safe; outlives the transcripts that use it.
class RecordFormat {
 public:
  virtual ~RecordFormat() = default;
  /// The agent program, as on the wire (`claude-code`); empty where the records themselves name it.
  virtual std::string_view program() const = 0;
  /// The dialect that this record proves; null if it proves none. Asked until a record proves one.
  virtual const Dialect* detect(const Value& json) const = 0;
  /// The dialect of metadata before the first record that proves one; null if this record is no such
  /// metadata.
  virtual const Dialect* metadata_dialect(const Value&) const { return nullptr; }
  /// `reads_internal`: agents that the program runs for itself are read like others; otherwise their
  /// transcripts have no events.
  virtual std::unique_ptr<RecordReader> make_reader(bool reads_internal) const = 0;
  /// For a format whose records can be read ahead; null: what they mean depends on those before them.
  virtual std::unique_ptr<RecordsAhead> make_ahead() const { return nullptr; }
};

}  // namespace earshot
