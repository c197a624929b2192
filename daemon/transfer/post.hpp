// The options of libcurl for one HTTP request with a body, for the daemon and the clients.
#pragma once
#include <curl/curl.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace earshot::transfer {

constexpr std::int64_t connect_ms_max = 5000;

/// The handle refers to all of it until the transfer has ended.
struct Post {
  const std::string& url;
  const curl_slist* headers;
  const std::string& body;
  const std::string& ca_file;  // empty: the system's certificate authorities
  std::string user_agent;
  std::int64_t timeout_ms;
};

/// Functions that libcurl calls with `self` during the transfer.
struct Callbacks {
  curl_xferinfo_callback check_stopped;  // not 0: the transfer ends
  curl_write_callback append_body;
  void* self;
};

/// Redirects are not followed, and no other protocol than HTTP is spoken.
void set_post(CURL* easy, const Post& post, const Callbacks& callbacks);

}  // namespace earshot::transfer
