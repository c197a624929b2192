// `/v1/events`: the frames of one subscription, one per line.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "serve/http/message.hpp"
#include "serve/stream/subscriber_session.hpp"

namespace earshot::serve {

/// Kind::events with the equivalent `subscribe` message in `subscription` (its id is "events"), or 400.
HttpResponse events_response(std::string_view query);

/// Appends the payload of each frame and a newline. `frames` are complete adjacent server frames.
void append_lines(std::string& out, std::span<const char> frames);

/// A chunk (RFC 9112, 7.1); without bytes it is the last one.
std::string chunk_of(std::string_view bytes);

class EventStream final : public SubscriberSession {
 public:
  /// Starts the session, or sends an error response.
  static void start(HttpConnection& connection, std::unique_ptr<SubscriberSession>& session,
                    const Caller& caller, const HttpResponse& response);

  EventStream(HttpConnection& connection, const Caller& caller, HttpResponse response,
              message::Subscribe subscribe);

  Connection::Kind kind() const override { return Connection::Kind::events; }
  void start() override;
  void wake() override;
  void tick(Clock::time_point now) override;
  void stop() override { wake(); }
  void token_changed() override;
  void browser_removed(std::string_view browser) override;

 private:
  bool is_open() const override { return !closing_; }
  void send();
  void write(std::string bytes);
  void finish();

  HttpResponse response_;
  message::Subscribe subscribe_;
  bool http_1_0_ = false;  // no chunks
  bool writing_ = false;
  bool closing_ = false;  // the last chunk is being written
  Clock::time_point closing_since_;
};

}  // namespace earshot::serve
