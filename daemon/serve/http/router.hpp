// The paths of the HTTP interface and who may use them. Pure.
#pragma once
#include <chrono>
#include <optional>
#include <span>

#include "base/clock.hpp"
#include "serve/auth/access.hpp"
#include "serve/http/message.hpp"
#include "serve/server_context.hpp"

namespace earshot::serve {

struct RequestContext {
  Caller caller;
  Clock::time_point now;
  std::string endpoint = {};  // `address:port` of the connection at this end; empty: the Unix socket
};

/// The path for the audit log; unknown paths, which may contain secrets, are not repeated.
std::string_view route_name(std::string_view path);

/// The longest body of a request to this path.
std::size_t body_bytes_max(std::string_view path, TransportKind transport_kind, const Limits& limits);

/// To a browser that asks for the script of a service worker, at any path: one that removes itself. The page
/// has none, so another program, which had the port while the daemon was stopped, has registered it.
std::optional<HttpResponse> replace_worker(const Request& request);

/// The response to a request that passed refuse().
HttpResponse route(const Request& request, const RequestContext& request_context, ServerContext& context);

/// The page at `/` and its files, embedded at build time.
struct PageAsset {
  std::string_view path, content_type, body;
};
/// The first is the page itself, at `/`.
std::span<const PageAsset> page_assets();
/// The icon of the page as SVG. `count`: digits that it shows; empty: none.
std::string page_icon(std::string_view count);
/// The Content-Security-Policy of the page: its own script, style and icon, and connections to the daemon at
/// `host` (empty: same origin only).
std::string page_policy(std::string_view host, bool tls);

}  // namespace earshot::serve
