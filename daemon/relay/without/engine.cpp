// Built without libnats.
#include "relay/engine.hpp"
#include "relay/feed.hpp"
#include "relay/reader.hpp"

namespace earshot::relay {

std::unique_ptr<Engine> make_engine(boost::asio::io_context&, Link, EngineListener&) { return nullptr; }
std::unique_ptr<Feed> make_feed(Link, std::string) { return nullptr; }
std::unique_ptr<Reader> make_reader(boost::asio::io_context&, Link) { return nullptr; }

std::string missing_library() {
  return "this earshotd was built without libnats, which [relay] and [hub] need: install libnats-dev (brew: "
         "cnats) and build it again";
}

}  // namespace earshot::relay
