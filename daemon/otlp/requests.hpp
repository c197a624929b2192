// Requests to the collector, with the headers of the configuration. The headers file is read again when the
// collector refuses them.
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>
#include <vector>

#include "otlp/config.hpp"
#include "otlp/sender.hpp"

namespace earshot::otlp {

/// All calls on the event loop's thread. `config` outlives this object.
class Requests {
 public:
  Requests(boost::asio::io_context& io, boost::asio::any_io_executor disk, const Config& config);
  Request make(const SignalConfig& signal, std::string body) const;
  /// For the next attempt: the file may have a new token by then. It is read on `disk`.
  void read_headers_again();

 private:
  boost::asio::io_context& io_;
  const boost::asio::any_io_executor disk_;
  const Config& config_;
  std::vector<std::string> file_headers_;
  const std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace earshot::otlp
