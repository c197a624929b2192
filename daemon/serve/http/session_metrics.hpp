// What happens in the sessions, counted since the start, and their present numbers, for /metrics.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>

#include "base/clock.hpp"
#include "core/event.hpp"
#include "serve/http/metrics.hpp"
#include "serve/stream/session_store.hpp"

namespace earshot::serve {

/// What sessions are like at present. They are added one by one, possibly in several turns of the loop.
class SessionFigures {
 public:
  static constexpr std::size_t context_sessions_max = 64;  // the fullest
  static constexpr std::size_t limits_max = 64;            // of all hosts and programs
  static constexpr std::size_t waits_max = 256;            // hosts, programs and reasons with a present wait

  /// `sessions` outlives this object.
  explicit SessionFigures(const SessionStore& sessions) : sessions_(sessions) {}
  /// Each session once. One that `is_live` may be shown by name.
  void add(const Session& session, bool is_live);
  std::size_t shown() const { return shown_; }  // that clients see
  /// Sessions that are gone since are left out.
  void fill(MetricsPage& page) const;

 private:
  struct Fullest {
    double ratio = 0;
    std::string session;
    friend bool operator<(const Fullest& a, const Fullest& b) {  // the fullest first
      return a.ratio != b.ratio ? a.ratio > b.ratio : a.session < b.session;
    }
  };
  using Key =
      std::tuple<std::string, std::string, std::string>;  // host (empty unless at a hub), program, name

  void add_wait(const Session& session);
  void add_context(const Session& session);
  void fill_contexts(MetricsPage& page) const;
  void fill_limits(MetricsPage& page) const;

  const SessionStore& sessions_;
  std::size_t shown_ = 0;
  std::uint64_t unseen_ = 0;
  std::map<std::string, std::uint64_t> states_;
  std::map<Key, double> longest_waits_;  // in seconds; the name is the reason
  std::vector<Fullest> fullest_;         // a heap, the least full on top
  std::map<Key, LimitState> limits_;     // the newest of each name
};

/// Label values that come from transcripts are few: further ones, and those that are no names, are `(other)`.
class SessionMetrics {
 public:
  static constexpr std::size_t programs_max = 16, models_max = 64, values_max = 16;
  static constexpr std::size_t hosts_max = 64;  // of a hub, with their own tokens, cost and limits
  static constexpr std::string_view other = "(other)";
  static constexpr std::size_t token_kinds_count = 4;

  /// `sessions` outlives this object.
  explicit SessionMetrics(SessionStore& sessions) : sessions_(sessions) {}

  /// The stream was read: what it has used so far is not counted.
  static void on_added(Member& member);
  /// `member`: the stream of the event, if it is about usage; null: unknown.
  void on_event(Session& session, Member* member, const EventBody& body);
  /// Before a stream is added or removed. A request that counts for another session from now on is not
  /// counted again.
  void count_costs();
  /// A stream was added or removed: by how much that changed what sessions cost is not counted.
  void skip_costs();
  /// Before the status becomes the session's.
  void on_status(Session& session, const status::Status& next, Clock::time_point now);
  /// What was counted since the start.
  void fill(MetricsPage& page);

  using Labels = std::tuple<std::string, std::string, std::string>;  // unused ones are empty
  using ByHost = std::pair<std::string, Labels>;                     // the host is empty unless at a hub

  /// Since the start, by host, program, model and kind.
  const std::map<ByHost, std::uint64_t>& tokens() const { return tokens_; }
  /// The cost since the start in USD, by host (empty unless at a hub) and program.
  std::map<std::pair<std::string, std::string>, double> cost_by_program();

 private:
  using Names = std::set<std::string, std::less<>>;

  static std::string label(Names& known, std::string_view value, std::size_t values_max);
  ByHost labels_of(const Session& session, std::string_view model, std::string_view kind);

  SessionStore& sessions_;
  Names programs_, models_, outcomes_, reasons_, hosts_;
  std::array<std::uint64_t, std::variant_size_v<EventBody>> events_ = {};  // by type
  std::map<ByHost, std::uint64_t> tokens_;
  std::map<ByHost, double> costs_;
  std::map<Labels, std::uint64_t> tools_, turns_, waits_;
  std::map<Labels, double> wait_seconds_;
};

}  // namespace earshot::serve
