// A daemon without sockets, and clients: the streams, the log and the files of a test.
#pragma once
#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "serve/stream/catch_up.hpp"
#include "serve/stream/records.hpp"
#include "serve/stream/subscriber.hpp"
#include "unit/serve/memory_archive.hpp"
#include "unit/serve/support.hpp"

namespace earshot::serve::test_subscriber {

using test::at;
using test::FakeStream;

inline std::string unquoted(std::string text) { return text.substr(1, text.size() - 2); }

/// Appends stream events to the log as the server does, and nothing else.
struct Daemon final : tail::StreamObserver {
  explicit Daemon(std::size_t log_bytes = 2 * LiveLog::segment_bytes)
      : context("dev7", log_bytes), catch_ups(io, context), records(context), archive(io) {
    context.archive = &archive;
    context.catch_ups = &catch_ups;
    context.records = &records;
  }

  FakeStream& stream(const std::string& name) {
    streams.push_back(std::make_unique<FakeStream>("claude/p/" + name, name));
    archive.add(*streams.back());
    context.sessions.session_of(*streams.back());
    return *streams.back();
  }
  void about(const tail::Stream& stream, std::uint16_t type) {
    Session& session = context.sessions.session_of(stream);
    session.changed_now(context.logs.head());
    const std::string name = type == type_reset ? "reset" : "stream.removed";
    context.logs.append({session.id, type, context.sessions.stream_id(stream)},
                        [&](Audience, std::string& out) {
                          out = R"({"type":")" + name + R"(","stream":")" + stream.name() + "\"}";
                        });
  }
  void on_event(const tail::Stream& stream, const Event& event) override {
    Session& session = context.sessions.session_of(stream);
    session.changed_now(context.logs.head());
    context.sessions.refresh(session);
    context.logs.append({session.id, type_of(event.body), context.sessions.stream_id(stream), event.cursor},
                        [&](Audience audience, std::string& out) {
                          append_event(out, event, {context.host, stream.name(), stream.session()},
                                       context.encoding(audience));
                        });
  }
  void on_changed(const tail::Stream&) override {}
  void on_added(const tail::Stream&) override {}
  void on_reset(const tail::Stream& stream, std::string_view) override { about(stream, type_reset); }
  void on_renamed(const tail::Stream&, std::string_view) override {}
  void on_removed(const tail::Stream&) override {}
  void on_compacting(std::string_view) override {}
  void on_batch_end() override {}

  void turn(FakeStream& stream, std::size_t text_bytes = 10) {
    const int n = 10 * ++turns[&stream];
    stream.write(test::prompt(n, std::string(text_bytes, 'p')) +
                     test::call(n + 1, "Bash", R"({"command":"ls"})", "c" + std::to_string(n)) +
                     test::result(n + 2, "c" + std::to_string(n), std::string(text_bytes, 'r')) +
                     test::answer(n + 3, "done"),
                 this);
  }
  /// Another history under the same name.
  void rewrite(FakeStream& stream) {
    stream.restart();
    on_reset(stream, "rewritten");
    turns[&stream] += 1000;
    turn(stream);
  }
  void settle() {
    io.restart();
    while (io.poll() > 0) {
    }
  }

  boost::asio::io_context io{1};
  ServerContext context;
  CatchUps catch_ups;
  Records records;
  test::MemoryArchive archive;
  std::vector<std::unique_ptr<FakeStream>> streams;
  std::map<FakeStream*, int> turns;
};

inline message::Subscribe request(const std::string& id, bool snapshot = true) {
  message::Subscribe asked;
  asked.id = id;
  asked.snapshot = snapshot;
  return asked;
}

/// A subscriber and a socket that takes as many bytes as the test allows.
struct Socket {
  explicit Socket(ServerContext& context) : subscriber(std::make_unique<Subscriber>(context)) {}

  /// The socket takes `bytes` more; false if nothing was ready.
  bool take(std::size_t bytes) {
    if (!rest.empty()) {
      const std::size_t n = std::min(bytes, rest.size());
      received += rest.substr(0, n);
      rest.erase(0, n);
      return true;
    }
    Batch batch;
    subscriber->gather(batch);
    if (batch.empty()) return false;
    std::string offered;
    for (const iovec& piece : batch.iovecs())
      offered.append(static_cast<const char*>(piece.iov_base), piece.iov_len);
    REQUIRE(offered.size() == batch.bytes());
    const std::size_t n = std::min(bytes, offered.size());
    received += offered.substr(0, n);
    const auto left = subscriber->sent(batch, n);
    rest.assign(left.data(), left.size());
    return true;
  }

  std::unique_ptr<Subscriber> subscriber;
  std::string received, rest;  // rest: of a frame that was sent partly
};

/// Keeps what it received, and resumes from there.
struct Client : Socket {
  explicit Client(Daemon& daemon) : Socket(daemon.context), daemon(daemon) {}

  void subscribe(std::vector<std::string> after, bool catch_up = false, Filter filter = {},
                 const std::string& id = "a", bool snapshot = false) {
    message::Subscribe asked = request(id, snapshot);
    asked.filter = std::move(filter);
    asked.catch_up = catch_up;
    asked.after = std::move(after);
    send(std::move(asked));
  }
  void send(message::Subscribe asked) { subscriber->subscribe(std::move(asked)); }
  /// Receives everything, including events from files.
  void take_all() {
    for (int quiet = 0; quiet < 3;) {
      quiet = take(1 << 30) ? 0 : quiet + 1;
      daemon.settle();
    }
    look();
  }
  /// Sorts the frames received since the last call: events by stream, and the others.
  void look() {
    if (!rest.empty()) {  // in the middle of a frame
      while (!rest.empty()) take(1 << 30);
    }
    for (const std::string& frame : test::unframe(std::exchange(received, {}))) {
      const std::string cursor = at(frame, "/cursor");
      const std::string type = unquoted(at(frame, "/type"));
      frames.push_back(frame);
      if (cursor != "absent") events[unquoted(at(frame, "/stream"))].push_back(unquoted(cursor));
      if (type == "reset") {
        events[unquoted(at(frame, "/stream"))].clear();
        ++resets;
      }
      types.push_back(cursor == "absent" ? type : "event");
    }
  }
  /// Reconnects with the same cursors.
  void reconnect() {
    look();
    subscriber = std::make_unique<Subscriber>(daemon.context);
  }
  std::vector<std::string> places() const {
    std::vector<std::string> all;
    for (const auto& [stream, cursors] : events)
      all.push_back(stream + ":" + (cursors.empty() ? "" : cursors.back()));
    return all;
  }
  std::size_t count(const std::string& type) const {
    return static_cast<std::size_t>(std::count(types.begin(), types.end(), type));
  }

  Daemon& daemon;
  std::vector<std::string> frames, types;
  std::map<std::string, std::vector<std::string>> events;
  std::size_t resets = 0;
  Filter filter;
};

inline std::vector<std::string> expected(const FakeStream& stream, const Filter& filter = {}) {
  std::vector<std::string> all;
  const auto wanted = [&](std::string_view type) { return filter.matches_type(type); };
  for (const Cursor& cursor : stream.cursors(wanted)) all.push_back(to_string(cursor));
  return all;
}

/// The same events, in any order.
inline bool same_events(std::vector<std::string> received, const FakeStream& stream) {
  std::vector<std::string> all = expected(stream);
  std::sort(received.begin(), received.end());
  std::sort(all.begin(), all.end());
  return received == all;
}

inline std::string place(const FakeStream& stream, const Cursor& cursor) {
  return stream.name() + ":" + to_string(cursor);
}

}  // namespace earshot::serve::test_subscriber
