// The page at `/` and its files, embedded at build time.
#pragma once
#include <string>
#include <string_view>

namespace earshot::serve {

struct PageAsset {
  std::string_view path, content_type, body;
};

/// `path` is `/`, `/app.js` or `/style.css`. The assets are contiguous, in this order.
const PageAsset& page_asset(std::string_view path);

/// The Content-Security-Policy of the page: its own script and style, and connections to the daemon at `host`
/// (empty: same origin only).
std::string page_policy(std::string_view host, bool tls);

}  // namespace earshot::serve
