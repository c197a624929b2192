// Who uses a connection, what it may see, how often it may send messages, and the audit log.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "core/event_json.hpp"
#include "serve/auth/browsers.hpp"
#include "serve/auth/secrets.hpp"
#include "serve/auth/sign_in.hpp"
#include "serve/http/message.hpp"
#include "serve/stream/live_log.hpp"
#include "serve/stream/subscription.hpp"

namespace earshot::tail {
class Stream;
}

namespace earshot::serve {

struct Session;
class SessionStore;

/// A user of a hub who is not its owner.
struct User {
  std::string name;
  std::string token_sha256;  // 64 hex digits: the token itself is not stored
  Filter allowed;            // hosts and projects; empty lists: all (the configuration requires one)
  View view = View::meta;    // the most this user may see
};

/// Null: unknown, or an empty token. Takes the same time for every token.
const User* find_user_by_token(const std::vector<User>& users, std::string_view token);

/// Who sent a request or a `hello`.
struct Caller {
  TransportKind transport_kind = TransportKind::tcp;
  AuthResult auth_result = AuthResult::anonymous;
  View view = View::full;      // the most it may see
  const User* user = nullptr;  // of AuthResult::user
  std::string origin = {};     // of the request; empty: not a browser
  std::string browser = {};    // the id of one that signed in; empty: by a token or the Unix socket

  bool is_authenticated() const {
    return auth_result == AuthResult::owner || auth_result == AuthResult::user;
  }
  /// By the owner's token, which may be rotated.
  bool is_by_owner_token() const {
    return auth_result == AuthResult::owner && transport_kind != TransportKind::unix_socket &&
           browser.empty();
  }
  const Filter* allowed() const { return user ? &user->allowed : nullptr; }
  std::string name() const {  // in the audit log
    if (auth_result == AuthResult::metrics) return "the metrics token";
    const std::string identity = user ? user->name : is_authenticated() ? "the owner" : "anonymous";
    return browser.empty() ? identity : identity + " in browser " + browser;
  }
  std::string_view permission() const {
    if (auth_result == AuthResult::metrics) return "receives metrics";
    return !is_authenticated() ? "receives nothing" : view == View::meta ? "receives meta" : "receives full";
  }
};

/// Whether `allowed` includes this session with all of its streams, removed ones too, as its status may be
/// about any of them: one id may be in use in several projects. If `allowed` lists projects, a session of
/// unknown project is excluded: the name of its directory is not used.
bool may_see(const Filter& allowed, const SessionStore& sessions, const Session& session);
/// Whether `allowed` includes this stream of the session, by the project of its main stream.
bool may_see(const Filter& allowed, const SessionStore& sessions, const Session& session,
             const tail::Stream& stream);
/// The same of a stream that is no longer a member, by the number in the log's tags; 0: of the session.
bool may_see_removed(const Filter& allowed, const SessionStore& sessions, const Session& session,
                     std::uint32_t stream);
/// By name only: false if no project could make may_see() true.
bool may_see_by_name(const Filter& allowed, const SessionStore& sessions, std::string_view session);

struct AccessPolicy {
  std::string token;          // the owner's; never logged
  std::string metrics_token;  // reads /metrics and nothing else; empty: none
  Browsers browsers;
  Challenges challenges;
  std::vector<User> users;             // of a hub
  View remote_view = View::meta;       // over TLS
  bool redact = true;                  // false: the owner on the Unix socket receives unredacted text
  std::function<void()> browser_used;  // null: not stored

  Caller identify(const Request& request, TransportKind transport_kind) const;
  /// By the token of a `hello`; `origin` is the one of the upgrade request.
  Caller identify(std::string_view given_token, std::string_view origin, TransportKind transport_kind) const;
  /// By the answer of a browser to a challenge, which is used by this call. Its rights are the present ones
  /// of its identity. `purpose` as in sign_in_message().
  Caller identify(const SignIn& sign_in, std::string_view purpose, std::string_view origin,
                  TransportKind transport_kind, Clock::time_point now);
  /// Of the owner (empty) or a user: changes with the token. Empty: there is no such user.
  std::string credential_of(std::string_view user) const;
  /// What a browser of this identity may see at present.
  View view_of(std::string_view user, TransportKind transport_kind) const;
  Audience audience_of(const Caller& caller) const;

 private:
  View view_of_transport(TransportKind kind) const {
    return kind == TransportKind::tls ? remote_view : View::full;
  }
  const User* find_user(std::string_view name) const;
  Caller as_user(const User& user, TransportKind transport_kind) const;
};

/// Limits a rate: `burst` at once, then `per_second`. Pure: the time is an argument.
class TokenBucket {
 public:
  using Time = Clock::time_point;

  TokenBucket(std::size_t per_second, std::size_t burst)
      : per_second_(static_cast<double>(per_second)), burst_(static_cast<double>(burst)), left_(burst_) {}

  /// False: above the rate.
  bool take(Time now) {
    if (last_ != Time())
      left_ = std::min(burst_, left_ + std::chrono::duration<double>(now - last_).count() * per_second_);
    last_ = now;
    if (left_ < 1) return false;
    left_ -= 1;
    return true;
  }

 private:
  double per_second_, burst_, left_;
  Time last_;
};

/// The audit log of a daemon with users: one line per connection, and one per change of
/// identity or permissions. Lines contain no token, code or query.
class Audit {
 public:
  /// Enables the log for a connection from `address`.
  void begin(std::string address) { address_ = std::move(address); }
  /// `audit: WHO from ADDRESS requests WHAT and RESULT`
  void log(std::string_view who, std::string_view what, std::string_view result);
  /// The same, unless the last line had the same `who` and `result`.
  void log_change(std::string_view who, std::string_view what, std::string_view result);
  /// Enabled, and nothing was logged yet.
  bool is_pending() const { return !address_.empty() && last_.empty(); }

 private:
  std::string address_;  // empty: disabled
  std::string last_;
};

}  // namespace earshot::serve
