#include "transfer/post.hpp"

#include <algorithm>

namespace earshot::transfer {

void set_post(CURL* easy, const Post& post, const Callbacks& callbacks) {
  const auto set = [&](CURLoption option, auto value) { curl_easy_setopt(easy, option, value); };
  set(CURLOPT_URL, post.url.c_str());
  set(CURLOPT_HTTPHEADER, post.headers);
  set(CURLOPT_USERAGENT, post.user_agent.c_str());  // copied
  set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(post.body.size()));
  set(CURLOPT_POSTFIELDS, post.body.c_str());
  set(CURLOPT_FOLLOWLOCATION, 0L);
#if LIBCURL_VERSION_NUM >= 0x075500
  set(CURLOPT_PROTOCOLS_STR, "http,https");
#else
  set(CURLOPT_PROTOCOLS, static_cast<long>(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
  set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(std::min(post.timeout_ms, connect_ms_max)));
  set(CURLOPT_TIMEOUT_MS, static_cast<long>(post.timeout_ms));
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_NOPROGRESS, 0L);
  set(CURLOPT_XFERINFOFUNCTION, callbacks.check_stopped);
  set(CURLOPT_XFERINFODATA, callbacks.self);
  set(CURLOPT_WRITEFUNCTION, callbacks.append_body);
  set(CURLOPT_WRITEDATA, callbacks.self);
  if (!post.ca_file.empty()) set(CURLOPT_CAINFO, post.ca_file.c_str());
}

}  // namespace earshot::transfer
