#include "otlp/acceptance.hpp"

#include <utility>

#include "log/log.hpp"

namespace earshot::otlp {

void Acceptance::set(std::string problem, bool is_retried) {
  const bool is_change =
      problem_.empty() != problem.empty() || (!problem.empty() && is_retried_ != is_retried);
  problem_ = std::move(problem);
  is_retried_ = is_retried;
  if (!is_change) return;
  if (problem_.empty())
    log_info("otlp: the collector accepts the data again");
  else
    log_warn("otlp: {}{}", problem_, is_retried ? "; retrying" : "; it is not sent again");
}

}  // namespace earshot::otlp
