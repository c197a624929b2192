#include "search/growth.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

#include "base/text.hpp"
#include "search/document.hpp"

namespace earshot::search {
namespace {

/// Fills a KeptEvent. False: the event makes no document.
struct Keeper {
  KeptEvent& kept;
  const TextFilter& filter;

  bool operator()(const event::SessionStarted& body) const { return keep_title(body.title, body.cwd); }
  bool operator()(const event::SessionUpdated& body) const {
    return keep_title(body.title.value_or(""), body.cwd.value_or(""));
  }
  bool operator()(const event::TurnStarted& body) const {
    kept.what = KeptEvent::What::turn;
    kept.has_text = body.prompt.has_value();
    if (body.prompt) kept.text = beginning(*body.prompt);
    return true;
  }
  bool operator()(const event::MessageAdded& body) const {
    if (!is_answer(body)) return false;
    kept.what = KeptEvent::What::answer;
    kept.text = beginning(*body.text);
    return true;
  }
  bool operator()(const event::ToolInvoked& body) const {
    kept.what = KeptEvent::What::tool;
    kept.text = beginning(body.tool);
    kept.more = body.input.json;
    return true;
  }
  bool operator()(const event::AgentStarted& body) const {
    kept.what = KeptEvent::What::agent;
    kept.text = beginning(body.description);
    return true;
  }
  template <class Body>
  bool operator()(const Body&) const {
    return false;
  }

  bool keep_title(std::string_view title, std::string_view cwd) const {
    kept.what = KeptEvent::What::session;
    kept.text = title, kept.more = cwd;
    return !title.empty() || !cwd.empty();
  }
  /// What clean_beginning() looks at.
  std::string_view beginning(std::string_view text) const {
    return cut_utf8(text, document_bytes_max + filter.reach());
  }
};

}  // namespace

StreamFacts facts_of(const Transcript& transcript) {
  const StreamState& state = transcript.state();
  return {.session = transcript.recorded_session(),
          .agent = transcript.recorded_agent(),
          .program = state.program,
          .project = state.project,
          .model = state.model,
          .title = state.title,
          .last_activity_ms = state.last_activity_ms,
          .usage = state.used.total(),
          .models = state.used.models(),
          .cost_usd = state.cost_usd,
          .cost_total_ms = state.cost_total_ms,
          .turn_started_ms = state.turn_started_ms,
          .turn = state.turn};
}

Event KeptEvent::event() const {
  const auto with = [&](EventBody body) { return Event{cursor, {}, time_ms, 0, {}, std::move(body)}; };
  switch (what) {
    case What::session: {
      event::SessionUpdated body;
      body.title = text, body.cwd = more;
      return with(std::move(body));
    }
    case What::turn: {
      event::TurnStarted body;
      if (has_text) body.prompt = text;
      return with(std::move(body));
    }
    case What::answer: {
      event::MessageAdded body{.role = "assistant", .kind = "text"};
      body.text = text;
      return with(std::move(body));
    }
    case What::tool:
      return with(event::ToolInvoked{.tool = text, .input = {more}});
    case What::agent:
      return with(event::AgentStarted{.description = text});
  }
  return {};
}

void Growth::add(const Event& event, const TextFilter& filter) {
  const std::int64_t earlier_ms = last_ms;
  if (event.time_ms > 0) {
    if (first_ms == 0) first_ms = event.time_ms;
    last_ms = std::max(last_ms, event.time_ms);
  }
  if (!is_complete) return;
  KeptEvent kept;
  if (!std::visit(Keeper{kept, filter}, event.body)) return;
  kept.cursor = event.cursor, kept.time_ms = event.time_ms, kept.earlier_ms = earlier_ms;
  bytes += kept.bytes();
  events.push_back(std::move(kept));
}

void Growth::forget_events() {
  is_complete = false;
  std::vector<KeptEvent>().swap(events);
  bytes = 0;
}

void Growth::prepend(Growth&& earlier) {
  if (earlier.to != from || !earlier.is_complete || !is_complete) return forget_events();
  from = earlier.from;
  if (earlier.first_ms > 0) first_ms = earlier.first_ms;
  last_ms = std::max(last_ms, earlier.last_ms);
  for (KeptEvent& each : events) each.earlier_ms = std::max(each.earlier_ms, earlier.last_ms);
  events.insert(events.begin(), std::move_iterator(earlier.events.begin()),
                std::move_iterator(earlier.events.end()));
  bytes += earlier.bytes;
}

void GrowthLog::begin_feed(const tail::Stream& stream) {
  fed_ = &stream;
  fed_from_ = stream.transcript()->end();
  fed_entry_ = nullptr;
}

/// Without an entry the stream has not grown since it was taken, or only by what is being fed.
Growth& GrowthLog::entry_of(const tail::Stream& stream) {
  if (fed_ == &stream && fed_entry_) return *fed_entry_;
  const auto [found, is_new] = streams_.try_emplace(stream.name());
  if (is_new) found->second.from = fed_ == &stream ? fed_from_ : stream.transcript()->end();
  if (fed_ == &stream) fed_entry_ = &found->second;
  return found->second;
}

void GrowthLog::add(const tail::Stream& stream, const Event& event) {
  Growth& growth = entry_of(stream);
  bytes_ -= growth.bytes;
  growth.add(event, filter_);
  if (growth.bytes > stream_bytes_max || bytes_ + growth.bytes > bytes_max) growth.forget_events();
  bytes_ += growth.bytes;
}

void GrowthLog::forget(std::string_view name) {
  fed_ = nullptr, fed_entry_ = nullptr;
  const auto found = streams_.find(name);
  if (found == streams_.end()) return;
  bytes_ -= found->second.bytes;
  found->second.forget_events();
}

void GrowthLog::drop(std::string_view name) {
  fed_ = nullptr, fed_entry_ = nullptr;
  const auto found = streams_.find(name);
  if (found == streams_.end()) return;
  bytes_ -= found->second.bytes;
  streams_.erase(found);
}

std::unique_ptr<Growth> GrowthLog::take(const tail::Stream& stream) {
  if (!stream.transcript()) {
    drop(stream.name());
    return nullptr;
  }
  auto growth = std::make_unique<Growth>(std::move(entry_of(stream)));
  growth->to = stream.transcript()->end();
  growth->facts = facts_of(*stream.transcript());
  bytes_ -= growth->bytes;
  streams_.erase(streams_.find(stream.name()));
  fed_ = nullptr, fed_entry_ = nullptr;
  return growth;
}

}  // namespace earshot::search
