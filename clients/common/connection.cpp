#include "common/connection.hpp"

#include <cstring>

#include "common/format.hpp"

namespace earshot::common {
namespace {

using Tcp = asio::ip::tcp;

// Trusts the certificates of `ca_file` (empty: of the system). Returns the reason if the file cannot be used.
std::string trust(asio::ssl::context& context, const std::string& ca_file) {
  Connection::Error error;
  SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
  context.set_verify_mode(asio::ssl::verify_peer, error);
  if (ca_file.empty())
    context.set_default_verify_paths(error);
  else
    context.load_verify_file(ca_file, error);
  return error ? "cannot read the certificates of " + (ca_file.empty() ? "the system" : ca_file) + ": " +
                     error.message()
               : "";
}

std::string tls_error(Connection::Error error, Wire::Tls& tls) {
  std::string text = "TLS: " + error.message();
  const long result = SSL_get_verify_result(tls.native_handle());
  if (result != X509_V_OK)
    text.append(" (")
        .append(X509_verify_cert_error_string(result))
        .append("); trust its authority with --tls-ca FILE");
  return text;
}

Tcp::endpoint tcp_endpoint(const Wire::Stream::endpoint& generic) {
  Tcp::endpoint endpoint;
  if (generic.size() > endpoint.capacity()) return endpoint;
  std::memcpy(endpoint.data(), generic.data(), generic.size());
  endpoint.resize(generic.size());
  return endpoint;
}

}  // namespace

void Wire::read_some(const BufferList<asio::mutable_buffer>& buffers, StreamDone done) {
  tls_ ? tls_->async_read_some(buffers, std::move(done)) : plain_.async_read_some(buffers, std::move(done));
}

void Wire::write_some(const BufferList<asio::const_buffer>& buffers, StreamDone done) {
  tls_ ? tls_->async_write_some(buffers, std::move(done)) : plain_.async_write_some(buffers, std::move(done));
}

void Connection::start() {
  const Endpoint& endpoint = address_.endpoint;
  if (endpoint.is_unix()) {
    const asio::local::stream_protocol::endpoint path(endpoint.socket);
    return connect({Wire::Stream::endpoint(path)});
  }
  resolver_.async_resolve(endpoint.host, endpoint.port,
                          [this, own = shared_from_this()](Error error, Tcp::resolver::results_type found) {
                            if (outcome_) return;
                            if (error) return end(EndReason::unreachable, error.message());
                            std::vector<Wire::Stream::endpoint> candidates;
                            for (const auto& each : found) candidates.emplace_back(each.endpoint());
                            connect(std::move(candidates));
                          });
}

void Connection::cancel() {
  resolver_.cancel();
  plain().close();
}

void Connection::end(ConnectionOutcome outcome) {
  if (!outcome_) outcome_ = std::move(outcome);
}

void Connection::end(EndReason end_reason, std::string text) {
  end(ConnectionOutcome{end_reason, 0, 0, std::move(text)});
}

void Connection::connect(std::vector<Wire::Stream::endpoint> candidates) {
  plain().expires_after(std::chrono::seconds(handshake_seconds_max));
  candidates_ = std::move(candidates);
  plain().async_connect(
      candidates_,
      [this, own = shared_from_this()](Error error, const Wire::Stream::endpoint&) { on_connected(error); });
}

void Connection::on_connected(Error error) {
  if (outcome_) return;
  if (error)
    return end(EndReason::unreachable, error == beast::error::timeout ? "no answer" : error.message());
  const Endpoint& endpoint = address_.endpoint;
  if (!endpoint.is_unix()) plain().socket().set_option(Tcp::no_delay(true), error);
  if (endpoint.tls) return encrypt();
  address_.needs_proof() ? ask_for_proof() : on_ready();
}

void Connection::encrypt() {
  trusted_.emplace(asio::ssl::context::tls_client);
  if (const std::string reason = trust(*trusted_, address_.tls_ca); !reason.empty())
    return end(EndReason::refused, reason);
  Wire::Tls& tls = wire_.start_tls(*trusted_);
  const std::string& host = address_.endpoint.host;
  Error error;
  asio::ip::make_address(host, error);
  if (error) SSL_set_tlsext_host_name(tls.native_handle(), host.c_str());  // a name, not a number
  tls.set_verify_callback(asio::ssl::host_name_verification(host), error);
  tls.async_handshake(Wire::Tls::client, [this, &tls, own = shared_from_this()](Error failure) {
    if (outcome_) return;
    if (failure == beast::error::timeout)
      return end(EndReason::unreachable, "the TLS handshake was not answered");
    if (failure) return end(EndReason::refused, tls_error(failure, tls));
    on_ready();
  });
}

void Connection::ask_for_proof() {
  nonce_ = make_nonce();
  question_.method(http::verb::get);
  question_.target("/v1/proof?nonce=" + nonce_);
  question_.set(http::field::host, address_.endpoint.authority());
  question_.set(http::field::user_agent, user_agent());
  proof_.emplace();
  proof_->body_limit(proof_bytes_max);
  http::async_write(wire_, question_, [this, own = shared_from_this()](Error error, std::size_t) {
    if (outcome_) return;
    if (error) return on_proof(error);
    http::async_read(wire_, buffer_, *proof_, [this, own = shared_from_this()](Error failure, std::size_t) {
      if (!outcome_) on_proof(failure);
    });
  });
}

void Connection::on_proof(Error error) {
  if (error == beast::error::timeout) return end(EndReason::unreachable, unanswered);
  if (error == http::error::end_of_stream || error == asio::error::connection_reset)
    return end(EndReason::closed, ended);  // perhaps the daemon stops
  if (error) return end(not_proven(0, error.message()));
  const Tcp::endpoint peer = tcp_endpoint(plain().socket().remote_endpoint(error));
  const auto& answer = proof_->get();
  const bool proven =
      answer.result() == http::status::ok &&
      is_proof(answer.body(), address_.token, nonce_, host_and_port(peer.address().to_string(), peer.port()));
  if (!proven) return end(not_proven(answer.result_int()));
  if (!answer.keep_alive() || buffer_.size() > 0)
    return end(EndReason::closed, "the connection was closed after the proof");
  on_ready();
}

}  // namespace earshot::common
