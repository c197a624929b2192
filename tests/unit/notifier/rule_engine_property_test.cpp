// Random lives of random sessions, with crashes, against what must always hold.
#include <random>
#include <set>

#include "unit/notifier/rig.hpp"

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
  std::int64_t next_ms = 0;  // when the next turn began; 0: never
};

class Life {
 public:
  explicit Life(unsigned seed) : random_(seed) {}

  void run() {
    desk_.begin();
    desk_.caught_up();
    for (int step = 0; step < 200; ++step) {
      const std::string session = "s" + std::to_string(pick(4));
      switch (pick(8)) {
        case 0:
          waits(session);
          break;
        case 1:
          works(session);
          break;
        case 2:
          finishes(session);
          break;
        case 3:
          starts(session);
          break;
        case 4:
          crashes();
          break;
        case 5:
          repeats(session);
          break;
        default:
          desk_.passes(pick(9000));
          break;
      }
    }
    desk_.passes(60'000);
    judge();
  }

 private:
  std::int64_t pick(std::int64_t below) {
    return std::uniform_int_distribution<std::int64_t>(0, below - 1)(random_);
  }

  void waits(const std::string& session) {
    works(session);
    desk_.passes(1);
    waiting_[session] = waits_.size();
    waits_.push_back({session, desk_.now_ms});
    desk_.waits(session);
  }
  void works(const std::string& session) {
    desk_.passes(1);
    if (const auto found = waiting_.find(session); found != waiting_.end()) {
      waits_[found->second].until_ms = desk_.now_ms;
      waiting_.erase(found);
    }
    desk_.status(session, "working");
  }
  void finishes(const std::string& session) {
    desk_.passes(1);
    ends_.push_back({session, ++turns_[session], desk_.now_ms});
    desk_.finishes(session, turns_[session], 95'000);
  }
  void starts(const std::string& session) {
    desk_.passes(1);
    for (End& each : ends_) {
      if (each.session == session && each.next_ms == 0) each.next_ms = desk_.now_ms;
    }
    desk_.starts(session, turns_[session] + 1);
  }
  // What is not written down is lost with it; the daemon tells all of the last minutes again, in order.
  void crashes() {
    desk_.restart();
    desk_.begin();
    for (int i = 0; i < 4; ++i) {
      const std::string session = "s" + std::to_string(i);
      const auto found = waiting_.find(session);
      if (found != waiting_.end()) {
        desk_.waits(session, "permission", waits_[found->second].since_ms);
      } else {
        desk_.status(session, "working");
      }
      for (const End& each : ends_) {
        if (each.session != session) continue;
        desk_.finishes(session, each.turn, 95'000, "completed", each.at_ms);
        if (each.next_ms != 0)
          desk_.frame(desk_.event(session, "turn.started", each.turn + 1, "", each.next_ms));
      }
    }
    desk_.caught_up();
  }
  void repeats(const std::string& session) {
    if (const auto found = waiting_.find(session); found != waiting_.end())
      desk_.waits(session, "permission", waits_[found->second].since_ms);
  }

  // How often a matter is in what was told.
  std::size_t told(const std::string& session, std::int64_t time_ms, bool of_status) {
    std::size_t count = 0;
    for (const Notice& notice : desk_.told) {
      for (const AckKey& matter : notice.matters) {
        if (matter.session == session && matter.of_status == of_status && times_[matter.id] == time_ms)
          ++count;
      }
    }
    return count;
  }

  void judge() {
    for (const Notice& notice : desk_.told) {
      if (notice.matters.size() == 1) times_[notice.matters[0].id] = notice.time_ms;
    }
    std::set<std::string> ids;
    for (const Notice& notice : desk_.told) {
      for (const AckKey& matter : notice.matters) {
        CHECK(ids.insert(matter.id).second);  // never twice
      }
    }
    for (const End& each : ends_) {
      const bool answered = each.next_ms != 0 && each.next_ms - each.at_ms < 5000;
      if (answered) CHECK(told(each.session, each.at_ms, false) == 0);
    }
    // Every wait that nobody answered while it could have been told in a group was told.
    std::size_t grouped = 0;
    for (const Notice& notice : desk_.told) grouped += notice.matters.size() > 1 ? notice.matters.size() : 0;
    for (const Wait& each : waits_) {
      const std::int64_t lasted_ms = (each.until_ms == 0 ? desk_.now_ms : each.until_ms) - each.since_ms;
      if (lasted_ms > RuleEngine::group_ms + 5000 && grouped == 0)
        CHECK(told(each.session, each.since_ms, true) == 1);
    }
    CHECK(desk_.memory().open.size() <= RuleEngine::open_max);
  }

  std::mt19937 random_;
  Desk desk_;
  std::map<std::string, int> turns_;
  std::map<std::string, std::size_t> waiting_;
  std::vector<Wait> waits_;
  std::vector<End> ends_;
  std::map<std::string, std::int64_t> times_;
};

}  // namespace

TEST_CASE("whatever happens, nothing is told twice, nothing that was answered in time, and no wait is lost") {
  for (unsigned seed = 1; seed <= 150; ++seed) {
    INFO("seed " << seed);
    Life(seed).run();
  }
}
