#include "notifier/delivery_queue.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <set>

#include "base/file.hpp"
#include "base/system.hpp"
#include "common/resumer.hpp"

namespace earshot::notifier {
namespace {

constexpr int format_version = 1;

std::int64_t time_of(const common::Fields& fields, std::string_view key) {
  return fields.integer(key).value_or(0);
}

void write_engine(JsonWriter& writer, const EngineState& engine) {
  writer.member("since_ms", engine.since_ms);
  writer.key("handled").array(engine.handled, [&](const auto& each) {
    writer.begin_object().member("id", each.first).member("at_ms", each.second).end_object();
  });
  writer.key("held").array(engine.held, [&](const EngineState::Held& each) {
    writer.begin_object().member("due_ms", each.due_ms).member("is_grouped", each.is_grouped);
    writer.member("is_escalation", each.is_escalation).key("notice");
    write_notice(writer, each.notice);
    writer.end_object();
  });
  writer.key("open").array(engine.open, [&](const Notice& each) { write_notice(writer, each); });
  writer.key("throttles").array(engine.throttles, [&](const auto& each) {
    const auto& [at_ms, id] = each.second;
    writer.begin_object().member("of", each.first).member("at_ms", at_ms).member("id", id).end_object();
  });
}

EngineState parse_engine(const common::Fields& fields) {
  EngineState engine;
  engine.since_ms = time_of(fields, "since_ms");
  for (const common::Fields& each : fields.objects("handled"))
    engine.handled.emplace(each.text("id"), time_of(each, "at_ms"));
  for (const common::Fields& each : fields.objects("held")) {
    if (auto notice = parse_notice(each.object("notice")))
      engine.held.push_back(
          {std::move(*notice), time_of(each, "due_ms"), each.flag("is_grouped"), each.flag("is_escalation")});
  }
  for (const common::Fields& each : fields.objects("open")) {
    if (auto notice = parse_notice(each)) engine.open.push_back(std::move(*notice));
  }
  for (const common::Fields& each : fields.objects("throttles"))
    engine.throttles[std::string(each.text("of"))] = {time_of(each, "at_ms"), std::string(each.text("id"))};
  return engine;
}

}  // namespace

std::string DeliveryQueue::load(SavedState& state, std::int64_t now_ms) {
  const PrivateFile file = read_private_file(path_, common::NotifierHealth::file_bytes_max);
  if (!file.text) return file.error;
  common::FrameParser parser;
  const auto fields = parser.parse(*file.text);
  if (!fields || fields->integer("version") != format_version)
    return path_ + " is not a valid state file: starting with an empty state";
  state.engine = parse_engine(*fields);
  for (const std::string_view entry : fields->texts("cursors")) {
    const auto [stream, cursor] = common::parse_stream_cursor(entry);
    if (!cursor.empty()) state.cursors.emplace_back(stream, cursor);
  }
  state.shown.server = fields->text("bus");
  for (const common::Fields& each : fields->objects("shown"))
    state.shown.entries.push_back({std::string(each.text("slot")), std::string(each.text("notice")),
                                   static_cast<std::uint32_t>(each.count("id")),
                                   std::string(each.text("link")), std::string(each.text("session"))});
  health_ = common::parse_notifier_health(*fields);
  health_.rules_problem.clear();  // these rules are used
  std::erase_if(health_.sinks, [&](const auto& each) { return rules_.sink(each.first) == nullptr; });
  for (const common::Fields& each : fields->objects("queue")) {
    auto notice = parse_notice(each.object("notice"));
    if (!notice || each.text("sink").empty()) continue;
    const bool interrupted = each.flag("is_sending"), resend = each.flag("is_resend");
    QueuedNotice queued{std::move(*notice),         std::string(each.text("sink")),
                        time_of(each, "queued_ms"), static_cast<int>(each.count("attempts")),
                        interrupted || resend,      each.flag("is_update")};
    if (interrupted && resend) {
      add_event(Event::What::dead, queued,
                "the notifier was killed twice while sending it; not sent a third time");
    } else {
      notices_.push_back({std::move(queued), now_ms});
    }
  }
  return {};
}

std::string DeliveryQueue::save(const EngineState& engine, const SavedState::Cursors& cursors,
                                const ShownNotices& shown) {
  std::string out;
  JsonWriter writer(out);
  writer.begin_object().member("version", format_version);
  write_engine(writer, engine);
  writer.key("cursors").array(cursors,
                              [&](const auto& each) { writer.value(each.first + ":" + each.second); });
  writer.key("queue").array(notices_, [&](const Entry& each) {
    const QueuedNotice& queued = each.queued;
    writer.begin_object().member("sink", queued.sink).member("queued_ms", queued.queued_ms);
    writer.member("attempts", queued.attempts).member("is_resend", queued.is_resend);
    writer.member("is_update", queued.is_update);
    writer.member("is_sending", each.in_flight && !can_retract(each)).key("notice");
    write_notice(writer, queued.notice);
    writer.end_object();
  });
  writer.member_if_any("bus", shown.server);
  writer.key("shown").array(shown.entries, [&](const ShownNotices::Entry& each) {
    writer.begin_object().member("slot", each.slot).member("notice", each.notice);
    writer.member("id", each.id).member_if_any("link", each.link).member_if_any("session", each.session);
    writer.end_object();
  });
  common::write_health(writer, health());
  writer.end_object();
  return write_private_file(path_, out);
}

bool DeliveryQueue::can_retract(const Entry& entry) const {
  const Sink* const sink = rules_.sink(entry.queued.sink);
  return sink != nullptr && sink->can_retract();
}

void DeliveryQueue::add_event(Event::What what, const QueuedNotice& queued, std::string why,
                              std::int64_t next_ms) {
  changed_ = true;
  events_.push_back({what, queued, std::move(why), next_ms});
}

void DeliveryQueue::update_health(const std::string& name, const Delivery& delivery, std::int64_t now_ms) {
  common::SinkHealth& sink = health_.sinks[name];
  if (delivery.done) {
    sink.sent_ms = now_ms;
    sink.answer = delivery.answer;
    sink.failures = 0;
    if (std::exchange(sink.is_reported, false)) failing_.push_back({name, {}, false});
    return;
  }
  sink.failed_ms = now_ms;
  sink.why = delivery.why;
  ++sink.failures;
  if (!sink.is_failing() || std::exchange(sink.is_reported, true)) return;
  failing_.push_back({name, delivery.why, true});
}

common::NotifierHealth DeliveryQueue::health() const {
  common::NotifierHealth health = health_;
  for (const Entry& each : notices_) {
    const auto sink = health.sinks.find(each.queued.sink);
    if (sink == health.sinks.end() || each.in_flight) continue;
    std::int64_t due_ms = each.due_ms;
    if (const auto paused = paused_until_.find(each.queued.sink); paused != paused_until_.end())
      due_ms = std::max(due_ms, paused->second);
    std::int64_t& next_ms = sink->second.next_ms;
    if (next_ms == 0 || due_ms < next_ms) next_ms = due_ms;
  }
  return health;
}

void DeliveryQueue::set_rules_problem(std::string why) {
  changed_ = changed_ || why != health_.rules_problem;
  health_.rules_problem = std::move(why);
}

void DeliveryQueue::add(const Notice& notice, std::int64_t now_ms) {
  for (const std::string& sink : notice.sinks) notices_.push_back({{notice, sink, now_ms}, now_ms});
  changed_ = true;
  while (notices_.size() > notices_max) {
    const auto oldest =
        std::find_if(notices_.begin(), notices_.end(), [](const Entry& each) { return !each.in_flight; });
    if (oldest == notices_.end()) break;
    add_event(Event::What::dead, oldest->queued,
              "more than " + std::to_string(notices_max) + " notices are queued: the oldest was dropped");
    notices_.erase(oldest);
  }
}

void DeliveryQueue::update(const Notice& notice, std::int64_t now_ms) {
  for (const std::string& sink : notice.sinks) {
    Entry entry{{notice, sink, now_ms}, now_ms};
    const auto queued = std::find_if(notices_.begin(), notices_.end(), [&](const Entry& each) {
      return !each.in_flight && each.queued.key() == entry.queued.key();
    });
    if (queued != notices_.end()) {
      if (!notice.event.empty()) queued->queued.notice.event = notice.event;
      queued->queued.notice.title = notice.title;
      queued->queued.notice.body = notice.body;
      queued->queued.notice.project = notice.project;
    } else if (can_retract(entry)) {
      entry.queued.is_update = true;
      notices_.push_back(std::move(entry));
    }
    changed_ = true;
  }
}

std::vector<QueuedNotice> DeliveryQueue::take_due(std::int64_t now_ms, bool can_retract_now) {
  // One delivery at a time per sink, or per notice where notices can be replaced.
  const auto lane = [&](const Entry& each) {
    return can_retract(each) ? each.queued.key() : each.queued.sink;
  };
  std::set<std::string> busy;
  for (const Entry& each : notices_) {
    if (each.in_flight) busy.insert(lane(each));
  }
  std::vector<QueuedNotice> out;
  for (Entry& each : notices_) {
    if (each.in_flight || each.due_ms > now_ms || can_retract(each) != can_retract_now) continue;
    const auto paused = paused_until_.find(each.queued.sink);
    if (paused != paused_until_.end() && paused->second > now_ms) continue;
    if (!busy.insert(lane(each)).second) continue;
    each.in_flight = changed_ = true;
    out.push_back(each.queued);
  }
  return out;
}

std::int64_t DeliveryQueue::backoff_ms(int attempts) {
  std::int64_t ms = backoff_first_ms;
  for (int i = 1; i < attempts && ms < backoff_max_ms; ++i) ms *= 2;
  ms = std::min(ms, backoff_max_ms);
  return ms / 2 + std::uniform_int_distribution<std::int64_t>(0, ms / 2)(random_);
}

void DeliveryQueue::report(const std::string& key, const Delivery& delivery, std::int64_t now_ms) {
  const auto found = std::find_if(notices_.begin(), notices_.end(), [&](const Entry& each) {
    return each.in_flight && each.queued.key() == key;
  });
  if (found == notices_.end()) return;
  QueuedNotice& queued = found->queued;
  if (queued.notice.is_report() && !delivery.done) {  // there may be no desktop: `earshot doctor` reports it
    changed_ = true;
    notices_.erase(found);
    return;
  }
  update_health(queued.sink, delivery, now_ms);
  if (delivery.done) {
    add_event(Event::What::sent, queued, delivery.answer);
    notices_.erase(found);
    return;
  }
  found->in_flight = false;
  ++queued.attempts;
  queued.is_resend = false;  // the result is known
  const bool too_old = queued.queued_ms + age_ms_max <= now_ms;
  if (delivery.permanent || queued.attempts >= attempts_max || too_old) {
    add_event(
        Event::What::dead, queued,
        delivery.why +
            (delivery.permanent ? "" : "; given up after " + std::to_string(queued.attempts) + " attempts"));
    notices_.erase(found);
    return;
  }
  const std::int64_t requested_ms = std::min(delivery.retry_after_ms, retry_after_ms_max);
  if (requested_ms > 0) paused_until_[queued.sink] = now_ms + requested_ms;
  found->due_ms = now_ms + std::max(requested_ms, backoff_ms(queued.attempts));
  add_event(Event::What::failed, queued, delivery.why, found->due_ms);
}

void DeliveryQueue::withdraw(const std::string& notice, const std::vector<std::string>& sinks) {
  std::erase_if(notices_, [&](Entry& each) {
    const bool is_target = each.queued.notice.id == notice && !each.in_flight &&
                           std::find(sinks.begin(), sinks.end(), each.queued.sink) != sinks.end();
    if (is_target) add_event(Event::What::withdrawn, each.queued, "answered before it could be sent");
    return is_target;
  });
}

std::optional<std::int64_t> DeliveryQueue::next_ms(std::int64_t now_ms) const {
  std::optional<std::int64_t> next;
  for (const Entry& each : notices_) {
    if (each.in_flight) continue;
    std::int64_t due_ms = each.due_ms;
    if (const auto paused = paused_until_.find(each.queued.sink); paused != paused_until_.end())
      due_ms = std::max(due_ms, paused->second);
    if (due_ms <= now_ms) continue;  // its sink is busy: the next report() starts it
    if (!next || due_ms < *next) next = due_ms;
  }
  return next;
}

void BoundedLog::append(std::string_view line) {
  const auto open_file = [this] {
    return Fd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  };
  Fd file = open_file();
  const std::string text = std::string(line.substr(0, bytes_max / 8)) + '\n';
  const FileStat stat = file ? stat_file(file.get()) : FileStat();
  if (file && stat.ok() && static_cast<std::size_t>(stat.size) + text.size() > bytes_max) {
    std::rename(path_.c_str(), (path_ + ".1").c_str());
    file = open_file();
  }
  if (file) write_all(file.get(), text);
}

std::vector<std::string> BoundedLog::last(std::size_t count) const {
  std::deque<std::string> lines;
  for (const std::string& path : {path_ + ".1", path_}) {
    std::ifstream file(path);
    std::string line;
    while (std::getline(file, line)) {
      lines.push_back(std::move(line));
      if (lines.size() > count) lines.pop_front();
    }
  }
  return {lines.begin(), lines.end()};
}

}  // namespace earshot::notifier
