// The page at `/` and what belongs to it; its files are in serve/page and are built into the program.
#pragma once
#include <string>
#include <string_view>

namespace earshot::serve {

struct PageAsset {
  std::string_view path, content_type, body;
};

/// That of this path; it must be one of `/`, `/app.js` and `/style.css`. They lie side by side, in this
/// order.
const PageAsset& page_asset(std::string_view path);

/// What the page may do: load its own script and style, and talk to the daemon at `host` (empty: only to
/// where it came from).
std::string page_policy(std::string_view host, bool tls);

}  // namespace earshot::serve
