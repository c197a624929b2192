// Whether the collector accepts traces and logs, or metrics. A log line for each change of state.
#pragma once
#include <string>

namespace earshot::otlp {

class Acceptance {
 public:
  /// For users; empty: the collector accepts the data.
  const std::string& problem() const { return problem_; }
  void accepted() { set({}, false); }
  /// `is_retried`: the data is sent again.
  void refused(std::string problem, bool is_retried) { set(std::move(problem), is_retried); }

 private:
  void set(std::string problem, bool is_retried);

  std::string problem_;
  bool is_retried_ = false;
};

}  // namespace earshot::otlp
