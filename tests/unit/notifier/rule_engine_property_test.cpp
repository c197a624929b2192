// Random sessions with crashes of the notifier, checked against invariants.
#include <random>
#include <set>

#include "unit/notifier/engine_harness.hpp"

using namespace earshot::notifier;
using namespace earshot::notifier::test;

namespace {

struct Wait {
  std::string session;
  std::int64_t since_ms;
  std::int64_t until_ms = 0;
};
struct End {
  std::string session;
  int turn;
  std::int64_t at_ms;
  std::int64_t next_ms = 0;  // start of the next turn; 0: none
};

class RandomRun {
 public:
  explicit RandomRun(unsigned seed) : random_(seed) {}

  void run() {
    harness_.begin();
    harness_.caught_up();
    for (int step = 0; step < 200; ++step) {
      const std::string session = "s" + std::to_string(pick(4));
      switch (pick(8)) {
        case 0:
          set_waiting(session);
          break;
        case 1:
          set_working(session);
          break;
        case 2:
          finish_turn(session);
          break;
        case 3:
          start_turn(session);
          break;
        case 4:
          crash();
          break;
        case 5:
          repeat_wait(session);
          break;
        default:
          harness_.advance(pick(9000));
          break;
      }
    }
    harness_.advance(60'000);
    check_invariants();
  }

 private:
  std::int64_t pick(std::int64_t below) {
    return std::uniform_int_distribution<std::int64_t>(0, below - 1)(random_);
  }

  void set_waiting(const std::string& session) {
    set_working(session);
    harness_.advance(1);
    waiting_[session] = waits_.size();
    waits_.push_back({session, harness_.now_ms});
    harness_.set_waiting(session);
  }
  void set_working(const std::string& session) {
    harness_.advance(1);
    if (const auto found = waiting_.find(session); found != waiting_.end()) {
      waits_[found->second].until_ms = harness_.now_ms;
      waiting_.erase(found);
    }
    harness_.set_status(session, "working");
  }
  void finish_turn(const std::string& session) {
    harness_.advance(1);
    ends_.push_back({session, ++turns_[session], harness_.now_ms});
    harness_.finish_turn(session, turns_[session], 95'000);
  }
  void start_turn(const std::string& session) {
    harness_.advance(1);
    for (End& each : ends_) {
      if (each.session == session && each.next_ms == 0) each.next_ms = harness_.now_ms;
    }
    harness_.start_turn(session, turns_[session] + 1);
  }
  // Restarts with the saved state; the daemon repeats the events of the last minutes in order.
  void crash() {
    harness_.restart();
    harness_.begin();
    for (int i = 0; i < 4; ++i) {
      const std::string session = "s" + std::to_string(i);
      const auto found = waiting_.find(session);
      if (found != waiting_.end()) {
        harness_.set_waiting(session, "permission", waits_[found->second].since_ms);
      } else {
        harness_.set_status(session, "working");
      }
      for (const End& each : ends_) {
        if (each.session != session) continue;
        harness_.finish_turn(session, each.turn, 95'000, "completed", each.at_ms);
        if (each.next_ms != 0)
          harness_.receive(harness_.event(session, "turn.started", each.turn + 1, "", each.next_ms));
      }
    }
    harness_.caught_up();
  }
  void repeat_wait(const std::string& session) {
    if (const auto found = waiting_.find(session); found != waiting_.end())
      harness_.set_waiting(session, "permission", waits_[found->second].since_ms);
  }

  // The number of notices about this event.
  std::size_t count_notified(const std::string& session, std::int64_t time_ms, bool is_status) {
    std::size_t count = 0;
    for (const Notice& notice : harness_.notices) {
      for (const AckKey& ack_key : notice.ack_keys) {
        if (ack_key.session == session && ack_key.is_status == is_status && times_[ack_key.id] == time_ms)
          ++count;
      }
    }
    return count;
  }

  void check_invariants() {
    for (const Notice& notice : harness_.notices) {
      if (notice.ack_keys.size() == 1) times_[notice.ack_keys[0].id] = notice.time_ms;
    }
    std::set<std::string> ids;
    for (const Notice& notice : harness_.notices) {
      for (const AckKey& ack_key : notice.ack_keys) {
        CHECK(ids.insert(ack_key.id).second);  // never twice
      }
    }
    for (const End& each : ends_) {
      const bool answered = each.next_ms != 0 && each.next_ms - each.at_ms < 5000;
      if (answered) CHECK(count_notified(each.session, each.at_ms, false) == 0);
    }
    // Each wait that was unanswered for longer than the grouping time caused a notice.
    std::size_t grouped = 0;
    for (const Notice& notice : harness_.notices)
      grouped += notice.ack_keys.size() > 1 ? notice.ack_keys.size() : 0;
    for (const Wait& each : waits_) {
      const std::int64_t lasted_ms = (each.until_ms == 0 ? harness_.now_ms : each.until_ms) - each.since_ms;
      if (lasted_ms > RuleEngine::group_ms + 5000 && grouped == 0)
        CHECK(count_notified(each.session, each.since_ms, true) == 1);
    }
    CHECK(harness_.state().open.size() <= RuleEngine::open_max);
  }

  std::mt19937 random_;
  EngineHarness harness_;
  std::map<std::string, int> turns_;
  std::map<std::string, std::size_t> waiting_;
  std::vector<Wait> waits_;
  std::vector<End> ends_;
  std::map<std::string, std::int64_t> times_;
};

}  // namespace

TEST_CASE("no notice is repeated, answered events cause none, and each long wait causes one") {
  for (unsigned seed = 1; seed <= 150; ++seed) {
    INFO("seed " << seed);
    RandomRun(seed).run();
  }
}
