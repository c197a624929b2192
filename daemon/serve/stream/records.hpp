// `read` requests: records read from the file, redacted, and sent in parts.
#pragma once
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/clock.hpp"
#include "serve/server_context.hpp"
#include "serve/stream/subscription.hpp"

namespace earshot::serve {

class Subscriber;

/// Each client has one record at a time, and clients take turns: at most `limits.reads` records are in
/// memory, and at most `limits.reads_waiting` requests of a client wait.
class Records {
 public:
  /// A client that took no part for this long loses its record to a client that waits. It is read again, from
  /// its next part, when the client takes more.
  std::chrono::milliseconds patience{500};

  explicit Records(ServerContext& context) : context_(context) {}
  Records(const Records&) = delete;
  Records& operator=(const Records&) = delete;

  /// Answers by Subscriber::push_answer(), possibly during the call.
  void read(Subscriber& reader, const message::Read& asked);
  /// Sends the next part for this reader, if one is ready.
  void send_next(Subscriber& reader);
  /// Checks `patience`.
  void tick() { begin(); }
  void forget(Subscriber& reader);
  std::size_t held() const { return reading_ + ready_.size(); }  // records in memory or being read

 private:
  struct Request {
    Subscriber* reader;
    message::Read asked;
    enum class State { waiting, reading, ready, dropped } state = State::waiting;
    bool is_json = true;
    std::string text = {};                    // while ready
    std::size_t part = 0, parts = 0, at = 0;  // sent parts, and their bytes
    Clock::time_point sent_at = {};           // the last part, or ready since
  };
  struct Reader {
    std::deque<message::Read> waiting;
    std::shared_ptr<Request> current;
  };
  using RequestPtr = std::shared_ptr<Request>;

  void begin();
  bool drop_idle();
  void start(const RequestPtr& request);
  void on_text(const RequestPtr& request, tail::RecordText record);
  void show(const RequestPtr& request, const std::string& text);
  void refuse(const RequestPtr& request, std::string_view code, std::string_view why, bool retry);
  void finish(const RequestPtr& request);
  void leave_state(const RequestPtr& request);
  std::string_view next_part(std::string_view rest) const;

  ServerContext& context_;
  std::unordered_map<Subscriber*, Reader> readers_;
  std::deque<Subscriber*> turns_;  // readers with a request to start, each once
  std::size_t reading_ = 0;        // requests
  std::deque<RequestPtr> ready_;   // the one idle for longest first
  bool beginning_ = false;         // begin() is not entered again: a refusal begins the next request
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace earshot::serve
