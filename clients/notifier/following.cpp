#include "notifier/following.hpp"

#include <algorithm>

#include "common/subscription.hpp"

namespace earshot::notifier {
namespace {

constexpr const char* look_id = "look";
constexpr const char* own_id = "notify";
constexpr const char* young_id = "young";
constexpr std::size_t moves_max = 4096;  // of more, those that moved first are no longer kept for a restart

}  // namespace

Following::Following(Decider& decider, std::vector<std::string> types, const Places& places,
                     std::int64_t since_ms)
    : decider_(decider), types_(std::move(types)), since_ms_(since_ms) {
  for (const auto& [stream, cursor] : places) {
    cursors_.handled(stream, cursor);
    moved(stream);
  }
}

void Following::moved(std::string_view stream) {
  moves_.insert_or_assign(std::string(stream), ++move_);
  if (moves_.size() <= moves_max) return;
  const std::uint64_t cut = move_ - moves_max / 2;
  std::erase_if(moves_, [&](const auto& each) { return each.second < cut; });
}

Following::Places Following::places(std::size_t count_max) const {
  std::vector<std::pair<std::uint64_t, std::string_view>> order;
  for (const auto& [stream, move] : moves_) order.emplace_back(move, stream);
  std::sort(order.begin(), order.end());
  if (order.size() > count_max)
    order.erase(order.begin(), order.end() - static_cast<std::ptrdiff_t>(count_max));
  Places places;
  for (const auto& [move, stream] : order) {
    if (const std::string* const cursor = cursors_.find(stream)) places.emplace_back(stream, *cursor);
  }
  return places;
}

std::string Following::begin(std::int64_t now_ms, std::int64_t max_age_ms) {
  phase_ = Phase::looking;
  cut_ms_ = std::max(now_ms - max_age_ms, since_ms_);
  seen_.clear();
  rewritten_.clear();
  asked_.clear();
  young_.clear();
  decider_.begin();
  return common::subscribe_message({}, {.id = look_id, .state = true});
}

void Following::take(std::string_view json, std::int64_t now_ms) {
  const auto frame = parser_.parse(json);
  if (!frame) {
    complaints_.emplace_back("the daemon sent what is no JSON object: ignored");
    return;
  }
  const std::string_view type = frame->text("type"), id = frame->text("id");
  const bool expected = phase_ == Phase::catching_up || phase_ == Phase::live;
  if (type == "session") {
    take_session(*frame, json, now_ms);
  } else if (type == "ready") {
    if (id == look_id && phase_ == Phase::looking) ask();
    if (id == own_id && phase_ == Phase::asking) {
      phase_ = Phase::catching_up;
      ask_for_the_young();
      if (awaited_ == 0) caught_up(now_ms);
    }
  } else if (type == "bookmark") {
    if (phase_ == Phase::catching_up && (id == own_id || id == young_id)) {
      cursors_.learn(*frame);
      if (frame->flag("complete") && --awaited_ == 0) caught_up(now_ms);
    } else if (phase_ == Phase::live) {
      cursors_.learn(*frame);
    }
  } else if (type == "reset") {
    take_reset(*frame);
  } else if (type == "stream.removed") {
    cursors_.forget(frame->text("stream"));
    if (const auto found = moves_.find(frame->text("stream")); found != moves_.end()) moves_.erase(found);
  } else if (type == "error") {
    complaints_.push_back("the daemon says: " + std::string(frame->text("message")) + " (" +
                          std::string(frame->text("code")) + ")");
  } else if (type == "status" || type == "welcome") {
    decider_.take(*frame, json, now_ms);
  } else if (!frame->text("cursor").empty() && expected) {  // else it comes again, with what was missed
    cursors_.handled(frame->text("stream"), frame->text("cursor"));
    moved(frame->text("stream"));
    decider_.take(*frame, json, now_ms);
  }
}

void Following::take_session(const common::Fields& frame, std::string_view json, std::int64_t now_ms) {
  if (phase_ == Phase::looking) common::append_seen(frame, seen_);
  if (phase_ == Phase::asking) {
    std::vector<common::SeenStream> seen;
    common::append_seen(frame, seen);
    for (const common::SeenStream& each : seen) {
      if (!asked_.contains(each.name)) young_.insert(each.name);
    }
  }
  if (phase_ == Phase::catching_up) cursors_.learn(frame, &rewritten_);
  if (phase_ == Phase::live) cursors_.learn(frame);
  decider_.take(frame, json, now_ms);
}

void Following::take_reset(const common::Fields& frame) {
  const std::string_view stream = frame.text("stream");
  if (frame.text("id").empty()) return cursors_.restart(stream);
  cursors_.forget(stream);  // unknown: it is gone; else its session frame says where it is now
  if (frame.text("reason") != "unknown") rewritten_.emplace(stream);
}

// Between the look and this nothing is lost: every stream that the look told of is asked for from there, or
// from where it was handled last; a status that changed between the two is in the second snapshot.
void Following::ask() {
  common::After after = cursors_.after(std::exchange(seen_, {}), cut_ms_);
  if (after.left_out > 0)
    complaints_.push_back(std::to_string(after.left_out) + " transcripts are followed only from now on");
  for (const std::string& place : after.places) asked_.emplace(common::parse_place(place).stream);
  awaited_ = after.places.empty() ? 0 : 1;
  phase_ = Phase::asking;
  requests_.push_back(common::unsubscribe_message(look_id));
  requests_.push_back(common::subscribe_message(
      {.type = types_},
      {.id = own_id, .snapshot = true, .catch_up = true, .after = std::move(after.places)}));
}

// A stream that was born between the look and the subscription is told of by the second snapshot, its events
// so far are not: they are asked for from the first one.
void Following::ask_for_the_young() {
  if (young_.empty()) return;
  common::SubscribeOptions options{.id = young_id, .snapshot = false, .catch_up = true};
  for (const std::string& stream : young_) options.after.push_back(stream + ":");
  if (options.after.size() > common::Cursors::after_places_max)
    options.after.resize(common::Cursors::after_places_max);
  requests_.push_back(common::subscribe_message({.type = types_}, options));
  ++awaited_;
}

void Following::caught_up(std::int64_t now_ms) {
  phase_ = Phase::live;
  rewritten_.clear();
  decider_.caught_up(now_ms);
}

}  // namespace earshot::notifier
