#include "serve/stream/audience_log.hpp"

#include "serve/stream/subscriber.hpp"
#include "serve/stream/types.hpp"

namespace earshot::serve {

AudienceLog::AudienceLog(std::size_t log_bytes_max) : log(log_bytes_max) {
  log.on_evict = [this](Position next) {
    for (Subscriber* keeper : catch_up_subscribers) keeper->on_evict(next);
    for (Position at = log.first(); at < next; ++at) {
      if (log.tags(at).type != type_removed) continue;
      removed.emplace_back(at, std::make_shared<const std::string>(log.frame(at)));
      if (removed.size() > removed_max) removed.pop_front();
    }
  };
}

}  // namespace earshot::serve
