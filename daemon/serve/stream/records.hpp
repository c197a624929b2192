// Whole records, on demand: read from the file, redacted, and handed out in parts.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "serve/server_context.hpp"
#include "serve/stream/message.hpp"

namespace earshot::serve {

class RecordReader {
 public:
  virtual ~RecordReader() = default;
  virtual Audience audience() const = 0;
  /// A `record` or an `error` frame.
  virtual void on_record(std::string_view payload) = 0;
  /// Parts can be had: give() hands them out, one at a time.
  virtual void on_record_there() = 0;
};

class Records {
 public:
  explicit Records(ServerContext& context) : context_(context) {}
  Records(const Records&) = delete;
  Records& operator=(const Records&) = delete;

  /// Answers through on_record(), perhaps at once.
  void ask(RecordReader& reader, const message::Read& asked);
  /// The next part of what this reader has asked for, if one is there: through on_record().
  void give(RecordReader& reader);
  void forget(RecordReader& reader);
  std::size_t held() const { return held_; }  // records whose text is in memory, or on its way there

 private:
  struct Request {
    RecordReader* reader;
    message::Read asked;
    bool begun = false;  // counted in held_
    bool there = false;
    bool is_json = true;
    std::string text;
    std::size_t part = 0, parts = 0, at = 0;
  };

  void begin();
  void took(const std::shared_ptr<Request>& request, tail::RecordText record);
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
