// The part of a connection's queue that comes from files: nothing behind it goes out before it is done.
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
    bool last = false;  // nothing of this stream comes after it
    Cursor end = {};    // and the reader is here then
  };

  struct Other {  // a stream whose file holds another history than the client's cursor is of
    std::string stream, reason;
  };

  std::string id;  // of the subscription that asked; empty: the client fell behind
  Mask who = 0;    // the subscriptions that it is for
  bool begun = false;
  std::map<std::string, EventRange, std::less<>> missing;     // by stream: what has not been sent yet
  std::map<std::string, std::uint32_t, std::less<>> streams;  // their ids; of cold ones there is none
  std::set<std::string, std::less<>> new_histories;           // of these: `reset` comes first
  std::deque<Reading> reading;
  std::vector<Other> others;        // told when all else is
  std::vector<std::string> places;  // `<stream>:<cursor>` that the client is at now

  bool done() const { return begun && missing.empty() && reading.empty(); }
};

}  // namespace earshot::serve
