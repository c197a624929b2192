// Snapshots by page, for a client that requests them so: their order, and what the sessions that were not
// sent yet add to the figures of an overview. Pure: no page is kept between two requests.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/quantities.hpp"
#include "core/event.hpp"
#include "serve/stream/session_store.hpp"

namespace earshot::serve {

/// The place of a session in the order of pages: those that wait for the user, those that are unseen, those
/// that work, then the others; each by their newest activity. It only changes together with
/// `Session::change`.
struct PageKey {
  std::uint32_t rank = 0;
  std::int64_t activity_ms = 0;  // the newest first
  std::uint32_t id = 0;          // of the session; unique

  friend bool operator<(const PageKey& a, const PageKey& b) {
    if (a.rank != b.rank) return a.rank < b.rank;
    if (a.activity_ms != b.activity_ms) return a.activity_ms > b.activity_ms;
    return a.id < b.id;
  }
};
PageKey page_key(const Session& session);

/// The figures of the sessions behind a page.
class PageRest {
 public:
  /// `day`: today, as of `day_of()`.
  explicit PageRest(LocalDay day) : day_(day) {}
  void add(const Session& session, const ModelTable& models);
  std::size_t sessions() const { return sessions_; }
  /// {"sessions":…,"waiting":…,"working":…,"unseen":…,"day":{…}}
  void append(JsonWriter& json) const;

 private:
  LocalDay day_;
  std::size_t sessions_ = 0, waiting_ = 0, working_ = 0, unseen_ = 0;
  std::size_t used_ = 0, without_cost_ = 0, partial_ = 0;  // sessions that used something today
  Usage usage_;
  double usd_ = 0;
  bool has_recorded_ = false, has_estimated_ = false;
};

/// Finds the sessions of the next page among all, in any order. Holds at most `size` keys.
class PageSelection {
 public:
  /// `after`: the last session of the previous page; empty: this is the first one.
  PageSelection(std::size_t size, std::optional<PageKey> after, LocalDay day)
      : size_(size), after_(after), rest_(day) {}
  /// Each session once. `find` returns the session with an id, or null if it is gone.
  template <class Find>
  void add(const Session& session, const ModelTable& models, Find&& find) {
    const std::optional<std::uint32_t> displaced = insert(page_key(session));
    if (!displaced) return;
    if (const Session* later = *displaced == session.id ? &session : find(*displaced))
      rest_.add(*later, models);
  }
  /// Their ids, the first of the page at the end.
  std::vector<std::uint32_t> ids_reversed();
  /// After ids_reversed(): where the next page begins.
  const std::optional<PageKey>& last() const { return after_; }
  const PageRest& rest() const { return rest_; }

 private:
  std::optional<std::uint32_t> insert(const PageKey& key);

  std::size_t size_;
  std::optional<PageKey> after_;
  std::vector<PageKey> keys_;  // a heap, the last of the page on top
  PageRest rest_;
};

/// {"type":"page",…}; an empty `next` is omitted.
std::string page_frame(std::string_view id, const PageRest& rest, std::string_view next);

}  // namespace earshot::serve
