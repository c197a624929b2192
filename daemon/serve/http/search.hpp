// `/v1/search` and `/v1/history`: their queries as values. The search itself is a callback of the daemon.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include "serve/http/message.hpp"
#include "serve/stream/subscription.hpp"

namespace earshot::serve {

struct SearchRequest {
  enum class What { search, history } what = What::search;
  std::string text;  // of search
  Filter filter;     // project, session, program, host
  Filter allowed;    // of a restricted user
  std::int64_t since_ms = 0,
               until_ms = std::numeric_limits<std::int64_t>::max();  // since 1970; until: exclusive
  unsigned kinds = 0;  // bits, by the index of search_kinds; 0: all
  std::size_t limit = 0;
  std::string after;   // `next` of the preceding page; empty: the first
  bool meta = false;   // no titles
  std::string client;  // whose requests are counted together
};

constexpr std::string_view search_kinds[] = {"prompt", "answer", "tool", "title"};

/// `done` is called once, later, on the loop.
using RunSearch = std::function<void(SearchRequest request, std::function<void(HttpResponse)> done)>;

struct RequestContext;
struct ServerContext;
HttpResponse search(const Request& request, const RequestContext& request_context, ServerContext& context);
HttpResponse history(const Request& request, const RequestContext& request_context, ServerContext& context);

}  // namespace earshot::serve
