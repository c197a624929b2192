// The part of a connection's queue that is read from files. Frames behind it wait until it is done.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "serve/stream/catch_up.hpp"

namespace earshot::serve {

struct Resume {
  using Mask = std::uint32_t;

  struct Reading {  // a chunk that is being sent
    std::string stream;
    std::shared_ptr<Chunk> chunk;
    Position at = 0;
    bool last = false;  // of this stream
    Cursor end = {};    // the position of the reader after the last chunk
  };
  struct OtherHistory {  // a stream whose file does not match the client's cursor
    std::string stream, reason;
  };
  struct Delivered {  // a subscription of the connection sends these events of a stream anyway
    Mask by = 0;
    EventRange range;
  };
  template <class Value>
  using ByStream = std::map<std::string, Value, std::less<>>;

  std::string id;          // of the subscription; empty: the client fell behind
  Mask subscribers = 0;    // subscriptions it is for
  bool is_silent = false;  // no bookmark at the end
  bool begun = false;
  ByStream<EventRange> missing;                      // not sent yet
  ByStream<std::vector<Delivered>> delivered;        // not to be repeated
  ByStream<std::uint32_t> stream_ids;                // of streams that are not cold
  std::set<std::string, std::less<>> new_histories;  // streams that a `reset` precedes
  std::deque<Reading> reading;
  std::vector<OtherHistory> others;  // reported after everything else
  std::vector<std::string> cursors;  // `<stream>:<cursor>` that the client has reached

  bool done() const { return begun && missing.empty() && reading.empty(); }
};

}  // namespace earshot::serve
