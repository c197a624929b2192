// `read` requests: records read from the file, redacted, and sent in parts.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "serve/server_context.hpp"
#include "serve/stream/subscription.hpp"

namespace earshot::serve {

class Subscriber;

class Records {
 public:
  explicit Records(ServerContext& context) : context_(context) {}
  Records(const Records&) = delete;
  Records& operator=(const Records&) = delete;

  /// Answers by on_record(), possibly during the call.
  void read(Subscriber& reader, const message::Read& asked);
  /// Sends the next part for this reader, if one is ready, by on_record().
  void send_next(Subscriber& reader);
  void forget(Subscriber& reader);
  std::size_t held() const { return held_; }  // records in memory or being read

 private:
  struct Request {
    Subscriber* reader;
    message::Read asked;
    bool begun = false;  // counted in held_
    bool ready = false;
    bool is_json = true;
    std::string text;
    std::size_t part = 0, parts = 0, at = 0;
  };

  void begin();
  void on_text(const std::shared_ptr<Request>& request, tail::RecordText record);
  void show(const std::shared_ptr<Request>& request, const std::string& text);
  void refuse(const std::shared_ptr<Request>& request, std::string_view code, std::string_view why,
              bool retry);
  void drop(const std::shared_ptr<Request>& request);

  ServerContext& context_;
  std::deque<std::shared_ptr<Request>> requests_;
  std::size_t held_ = 0;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace earshot::serve
