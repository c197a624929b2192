#include "serve/stream/records.hpp"

#include <algorithm>
#include <cstring>

#include "base/text.hpp"
#include "core/event_json.hpp"
#include "serve/stream/frames.hpp"
#include "serve/stream/subscriber.hpp"

namespace earshot::serve {

void Records::read(Subscriber& reader, const message::Read& asked) {
  auto request = std::make_shared<Request>();
  request->reader = &reader;
  request->asked = asked;
  if (reader.audience() == Audience::meta)
    return refuse(request, "not_allowed", "this connection has the meta view: records are not available",
                  false);
  const auto waiting = std::count_if(requests_.begin(), requests_.end(),
                                     [&](const auto& each) { return each->reader == &reader; });
  if (static_cast<std::size_t>(waiting) >= context_.limits.reads_waiting)
    return refuse(request, "busy", "too many reads are waiting: retry after some were answered", true);
  requests_.push_back(std::move(request));
  begin();
}

/// One request at a time per reader, `limits.reads` in total.
void Records::begin() {
  for (std::size_t i = 0; i < requests_.size() && held_ < context_.limits.reads; ++i) {
    const auto request = requests_[i];
    const bool busy = std::any_of(requests_.begin(), requests_.end(), [&](const auto& each) {
      return each->begun && each->reader == request->reader;
    });
    if (request->begun || busy) continue;
    request->begun = true;
    ++held_;
    const tail::Stream* stream = context_.archive ? context_.archive->find(request->asked.stream) : nullptr;
    if (!stream) {
      refuse(request, "not_found", "there is no stream with this name", false);
      return begin();
    }
    context_.archive->record(*stream, request->asked.cursor,
                             [this, weak = std::weak_ptr<Request>(request),
                              alive = std::weak_ptr<char>(alive_)](tail::RecordText record) {
                               const auto asked = weak.lock();
                               if (!alive.expired() && asked) on_text(asked, std::move(record));
                             });
  }
}

void Records::on_text(const std::shared_ptr<Request>& request, tail::RecordText record) {
  if (record.found == tail::RecordText::Found::differs) {
    return refuse(request, "bad_cursor",
                  "the cursor does not match the transcript: it was rewritten or truncated", false);
  }
  if (record.found == tail::RecordText::Found::error)
    return refuse(request, "not_found",
                  std::string("the transcript cannot be read: ") + std::strerror(record.error), true);
  if (!context_.read_remote_record) return show(request, record.text);
  context_.read_remote_record(record.text, [this, weak = std::weak_ptr<Request>(request),
                                            alive = std::weak_ptr<char>(alive_)](RemoteRecord answer) {
    const auto asked = weak.lock();
    if (alive.expired() || !asked) return;
    if (!answer.code.empty()) return refuse(asked, answer.code, answer.why, answer.retry);
    show(asked, answer.text);
  });
}

void Records::show(const std::shared_ptr<Request>& request, const std::string& text) {
  request->text = context_.record_text(request->reader->audience(), text, request->is_json);
  const std::size_t part_bytes = context_.limits.record_part_bytes;
  // Parts end on character boundaries: count them as send_next() cuts them.
  for (std::size_t at = 0; at < request->text.size() || request->parts == 0; ++request->parts) {
    const auto rest = std::string_view(request->text).substr(at);
    if (rest.empty()) {
      ++request->parts;
      break;
    }
    at += std::max<std::size_t>(cut_utf8(rest, part_bytes).size(), 1);
  }
  request->ready = true;
  request->reader->wake();
}

void Records::send_next(Subscriber& reader) {
  const auto found = std::find_if(requests_.begin(), requests_.end(),
                                  [&](const auto& each) { return each->reader == &reader && each->ready; });
  if (found == requests_.end()) return;
  const auto request = *found;
  const auto rest = std::string_view(request->text).substr(request->at);
  std::string_view piece = cut_utf8(rest, context_.limits.record_part_bytes);
  if (piece.empty()) piece = rest.substr(0, 1);
  request->at += piece.size();
  ++request->part;
  std::string out = R"({"type":"record","id":)";
  append_json_string(out, request->asked.id);
  out += R"(,"part":)" + std::to_string(request->part) + R"(,"parts":)" + std::to_string(request->parts);
  if (!request->is_json) out += R"(,"json":false)";
  out += R"(,"data":)";
  append_json_string(out, piece);
  out += '}';
  const bool last = request->part == request->parts;
  if (last) drop(request);
  reader.push_answer(out);
  if (!last) reader.wake();  // the next part follows at once
}

void Records::refuse(const std::shared_ptr<Request>& request, std::string_view code, std::string_view why,
                     bool retry) {
  Subscriber& reader = *request->reader;
  const std::string payload = error_frame(request->asked.id, code, why, retry);
  drop(request);
  reader.push_answer(payload);
  reader.wake();
}

void Records::drop(const std::shared_ptr<Request>& request) {
  const auto holder = request;
  if (std::erase(requests_, holder) == 0) return;
  if (holder->begun) --held_;
  begin();
}

void Records::forget(Subscriber& reader) {
  const auto had = requests_.size();
  std::erase_if(requests_, [&](const auto& each) {
    if (each->reader != &reader) return false;
    if (each->begun) --held_;
    return true;
  });
  if (requests_.size() != had) begin();
}

}  // namespace earshot::serve
