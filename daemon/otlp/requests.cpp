#include "otlp/requests.hpp"

#include <boost/asio/post.hpp>
#include <utility>

namespace earshot::otlp {

Requests::Requests(boost::asio::io_context& io, boost::asio::any_io_executor disk, const Config& config)
    : io_(io), disk_(std::move(disk)), config_(config), file_headers_(config.file_headers) {}

Request Requests::make(const SignalConfig& signal, std::string body) const {
  Request request{signal.url, signal.headers, std::move(body), signal.tls_ca, signal.timeout.count()};
  request.headers.insert(request.headers.end(), file_headers_.begin(), file_headers_.end());
  request.headers.push_back("Content-Type: application/x-protobuf");
  return request;
}

void Requests::read_headers_again() {
  if (config_.headers_file.empty()) return;
  boost::asio::post(disk_,
                    [this, alive = std::weak_ptr<char>(alive_), file = config_.headers_file, &io = io_] {
                      Config read;
                      read.headers_file = file;
                      const bool is_read = read_headers_file(read).empty();
                      boost::asio::post(io, [this, alive, is_read, headers = std::move(read.file_headers)] {
                        if (is_read && !alive.expired()) file_headers_ = headers;
                      });
                    });
}

}  // namespace earshot::otlp
