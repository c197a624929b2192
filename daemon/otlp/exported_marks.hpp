// Which events of a transcript were exported, if it is read again: after a restart, when it was away, or when
// its end was rewritten. A cursor contains the hash of all bytes before it, so one that occurs again proves
// that everything up to there is the same. Pure.
#pragma once
#include <cstddef>
#include <utility>
#include <vector>

#include "core/cursor.hpp"

namespace earshot::otlp {

/// Cursors of the events of one transcript in their order: the last ones without gaps, before them with
/// distances that grow towards the beginning.
class Marks {
 public:
  static constexpr std::size_t marks_max = 64, dense_max = 32;  // in memory
  static constexpr std::size_t stored_max = 12, stored_dense_max = 4;

  Marks() = default;
  /// In their order.
  explicit Marks(std::vector<Cursor> marks) : marks_(std::move(marks)) {}
  /// REQUIRES: after the last one.
  void add(const Cursor& cursor);
  const std::vector<Cursor>& all() const { return marks_; }
  /// At most stored_max, to be kept in a file.
  std::vector<Cursor> stored() const;

 private:
  std::vector<Cursor> marks_;
};

/// Compares the events of a transcript that is read again with the marks of what was exported.
class ReplayCheck {
 public:
  enum class Result {
    exported,  // as far as known: a later `differs` refutes it for the events after matched()
    fresh,     // not exported
    differs,   // it is another transcript after matched(): read it again from there
  };

  /// Nothing was exported: each event is fresh.
  ReplayCheck() = default;
  /// `marks`: in their order; everything up to the last one was exported. `from`: where the reading begins,
  /// a position of this transcript.
  ReplayCheck(std::vector<Cursor> marks, const Cursor& from);

  /// In the order of the transcript.
  Result on_event(const Cursor& cursor);
  /// True: what was exported was found again, or nothing was. Otherwise no event has shown yet that it is
  /// still there.
  bool is_complete() const { return is_complete_; }
  /// Up to here everything is as it was exported.
  const Cursor& matched() const { return matched_; }

 private:
  std::vector<Cursor> marks_;
  std::size_t next_ = 0;  // the first mark that no event has reached
  Cursor matched_ = begin_cursor;
  bool is_complete_ = true;
};

}  // namespace earshot::otlp
