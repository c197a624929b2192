#include "serve/stream/records.hpp"

#include <cstring>

#include "base/json_writer.hpp"
#include "base/text.hpp"
#include "serve/stream/frames.hpp"
#include "serve/stream/subscriber.hpp"

namespace earshot::serve {

void Records::read(Subscriber& reader, const message::Read& asked) {
  const auto refused = [&](std::string_view code, std::string_view why, bool retry) {
    reader.push_answer(error_frame(asked.id, code, why, retry));
  };
  if (reader.audience() == Audience::meta)
    return refused("not_allowed", "this connection has the meta view: records are not available", false);
  Reader& of = readers_[&reader];
  if (of.waiting.size() + (of.current ? 1 : 0) >= context_.limits.reads_waiting)
    return refused("busy", "too many reads are waiting: retry after some were answered", true);
  of.waiting.push_back(asked);
  if (of.waiting.size() == 1 && !of.current) turns_.push_back(&reader);
  begin();
}

void Records::begin() {
  if (std::exchange(beginning_, true)) return;
  while (!turns_.empty() && (held() < context_.limits.reads || drop_idle())) {
    Reader& next = readers_.at(turns_.front());
    if (!next.current) {
      next.current = std::make_shared<Request>(Request{turns_.front(), std::move(next.waiting.front())});
      next.waiting.pop_front();
    }
    turns_.pop_front();
    start(RequestPtr(next.current));
  }
  beginning_ = false;
}

/// False: every record in memory is being read, or was taken from recently.
bool Records::drop_idle() {
  if (ready_.empty() || Clock::now() - ready_.front()->sent_at < patience) return false;
  const RequestPtr idle = ready_.front();
  leave_state(idle);
  idle->state = Request::State::dropped;
  return true;
}

void Records::start(const RequestPtr& request) {
  request->state = Request::State::reading;
  ++reading_;
  const tail::Stream* stream =
      context_.archive ? context_.archive->find_present(request->asked.stream) : nullptr;
  if (!stream) return refuse(request, "not_found", "there is no stream with this name", false);
  context_.archive->record(
      *stream, request->asked.cursor,
      [this, weak = std::weak_ptr(request), alive = std::weak_ptr(alive_)](tail::RecordText record) {
        const auto asked = weak.lock();
        if (!alive.expired() && asked) on_text(asked, std::move(record));
      });
}

void Records::on_text(const RequestPtr& request, tail::RecordText record) {
  if (record.found == tail::RecordText::Found::differs) {
    return refuse(request, "bad_cursor",
                  "the cursor does not match the transcript: it was rewritten or truncated", false);
  }
  if (record.found == tail::RecordText::Found::error)
    return refuse(request, "not_found",
                  std::string("the transcript cannot be read: ") + std::strerror(record.error), true);
  if (!context_.read_remote_record) return show(request, record.text);
  context_.read_remote_record(
      record.text, [this, weak = std::weak_ptr(request), alive = std::weak_ptr(alive_)](RemoteRecord answer) {
        const auto asked = weak.lock();
        if (alive.expired() || !asked) return;
        if (!answer.code.empty()) return refuse(asked, answer.code, answer.why, answer.retry);
        show(asked, answer.text);
      });
}

void Records::show(const RequestPtr& request, const std::string& text) {
  leave_state(request);
  request->state = Request::State::ready;
  request->sent_at = Clock::now();
  ready_.push_back(request);
  request->text = context_.record_text(request->reader->audience(), text, request->is_json);
  // Parts end on character boundaries: count them as send_next() cuts them.
  request->parts = 0;
  std::string_view rest = request->text;
  do {
    ++request->parts;
    rest.remove_prefix(next_part(rest).size());
  } while (!rest.empty());
  request->reader->wake();
}

std::string_view Records::next_part(std::string_view rest) const {
  const std::string_view part = cut_utf8(rest, context_.limits.record_part_bytes);
  return part.empty() ? rest.substr(0, 1) : part;
}

void Records::send_next(Subscriber& reader) {
  const auto found = readers_.find(&reader);
  if (found == readers_.end() || !found->second.current) return;
  const RequestPtr request = found->second.current;
  if (request->state == Request::State::dropped) {
    request->state = Request::State::waiting;
    turns_.push_back(&reader);
    return begin();
  }
  if (request->state != Request::State::ready) return;
  const std::string_view part = next_part(std::string_view(request->text).substr(request->at));
  request->at += part.size();
  ++request->part;
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("type", "record").member("id", request->asked.id);
  json.member("part", request->part).member("parts", request->parts);
  if (!request->is_json) json.member("json", false);
  json.member("data", part).end_object();
  if (request->part == request->parts) {
    finish(request);
  } else {
    std::erase(ready_, request);
    ready_.push_back(request);
    request->sent_at = Clock::now();
  }
  reader.push_answer(out);
  reader.wake();  // for the next part
}

void Records::refuse(const RequestPtr& request, std::string_view code, std::string_view why, bool retry) {
  finish(request);
  request->reader->push_answer(error_frame(request->asked.id, code, why, retry));
  request->reader->wake();
}

/// Frees what the request holds.
void Records::leave_state(const RequestPtr& request) {
  if (request->state == Request::State::reading) --reading_;
  if (request->state == Request::State::ready) std::erase(ready_, request);
  request->text = {};
}

void Records::finish(const RequestPtr& request) {
  leave_state(request);
  const auto reader = readers_.find(request->reader);
  reader->second.current.reset();
  if (reader->second.waiting.empty())
    readers_.erase(reader);
  else
    turns_.push_back(request->reader);
  begin();
}

void Records::forget(Subscriber& reader) {
  const auto found = readers_.find(&reader);
  if (found == readers_.end()) return;
  if (found->second.current) leave_state(found->second.current);
  readers_.erase(found);
  std::erase(turns_, &reader);
  begin();
}

}  // namespace earshot::serve
