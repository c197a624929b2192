#include "otlp/exported_marks.hpp"

#include <utility>

#include "otlp/wire_event.hpp"

namespace earshot::otlp {
namespace {

/// Drops the mark before the last `dense` ones whose neighbours are nearest to each other, in relation to
/// their distance from the end: what remains has distances that grow with the age.
void drop_one(std::vector<Cursor>& marks, std::size_t dense) {
  const std::uint64_t end = marks.back().offset + 1;
  std::size_t dropped = 0;
  double smallest = -1;
  for (std::size_t i = 0; i + dense < marks.size(); ++i) {
    const std::uint64_t before = i == 0 ? 0 : marks[i - 1].offset;
    const double gap =
        static_cast<double>(marks[i + 1].offset - before) / static_cast<double>(end - marks[i].offset);
    if (smallest >= 0 && gap >= smallest) continue;
    smallest = gap;
    dropped = i;
  }
  marks.erase(marks.begin() + static_cast<std::ptrdiff_t>(dropped));
}

/// The index is no part of the bytes: another version may find other events in the same line.
bool is_same_prefix(const Cursor& a, const Cursor& b) {
  return a.offset == b.offset && a.prefix_hash == b.prefix_hash;
}

}  // namespace

void Marks::add(const Cursor& cursor) {
  marks_.push_back(cursor);
  if (marks_.size() > marks_max) drop_one(marks_, dense_max);
}

std::vector<Cursor> Marks::stored() const {
  std::vector<Cursor> marks = marks_;
  while (marks.size() > stored_max) drop_one(marks, stored_dense_max);
  return marks;
}

ReplayCheck::ReplayCheck(std::vector<Cursor> marks, const Cursor& from)
    : marks_(std::move(marks)), matched_(from) {
  while (next_ < marks_.size() && !is_after(marks_[next_], from)) ++next_;
  is_complete_ = next_ == marks_.size();
}

ReplayCheck::Result ReplayCheck::on_event(const Cursor& cursor) {
  while (!is_complete_) {
    const Cursor& mark = marks_[next_];
    const bool is_last = next_ + 1 == marks_.size();
    if (cursor.offset < mark.offset) return Result::exported;
    if (is_same_prefix(cursor, mark)) {
      matched_ = mark;
      if (cursor.index < mark.index) return Result::exported;
      ++next_;
      is_complete_ = is_last;
      if (cursor.index == mark.index) return Result::exported;
      continue;
    }
    if (cursor.offset == mark.offset) return Result::differs;
    // The line of the mark was passed: its events are others, or it is another line. Of another version too.
    if (is_same_prefix(matched_, mark)) {
      ++next_;
      is_complete_ = is_last;
      continue;
    }
    if (is_last) return Result::differs;
    ++next_;
  }
  return Result::fresh;
}

}  // namespace earshot::otlp
