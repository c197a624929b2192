#include "serve/auth/access.hpp"

#include "log/log.hpp"
#include "serve/auth/p256.hpp"
#include "serve/stream/session_store.hpp"

namespace earshot::serve {
namespace {

bool includes(const Filter& allowed, const SessionStore& sessions, const Session& session,
              std::string_view project) {
  if (allowed.empty()) return true;
  if (session.name.empty() || (!allowed.project.empty() && project.empty())) return false;
  SessionKeys keys = sessions.keys_of(session);
  keys.project = project;
  return allowed.matches_session(keys);
}

}  // namespace

const User* find_user_by_token(const std::vector<User>& users, std::string_view token) {
  if (token.empty()) return nullptr;
  const std::string hash = sha256_hex(token);
  const User* found = nullptr;
  for (const User& each : users)
    if (same_secret(hash, each.token_sha256)) found = &each;
  return found;
}

Caller AccessPolicy::as_user(const User& user, TransportKind transport_kind) const {
  const bool meta = user.view == View::meta || view_of_transport(transport_kind) == View::meta;
  return {transport_kind, AuthResult::user, meta ? View::meta : View::full, &user, {}};
}

Caller AccessPolicy::identify(const Request& request, TransportKind transport_kind) const {
  const std::string_view origin = request.origins.empty() ? std::string_view() : request.origins.front();
  const AuthResult result = authenticate(request, transport_kind, token);
  const std::string_view given = bearer_token(request);
  Caller caller{transport_kind, result, view_of_transport(transport_kind)};
  if (result == AuthResult::wrong_token && !given.empty()) {
    caller = identify(given, origin, transport_kind);
    if (!metrics_token.empty() && same_secret(given, metrics_token)) caller.auth_result = AuthResult::metrics;
  }
  caller.origin = origin;
  return caller;
}

Caller AccessPolicy::identify(std::string_view given_token, std::string_view origin,
                              TransportKind transport_kind) const {
  Caller caller{transport_kind, AuthResult::wrong_token, view_of_transport(transport_kind)};
  if (same_secret(given_token, token)) {
    caller.auth_result = AuthResult::owner;
  } else if (const User* user = find_user_by_token(users, given_token)) {
    caller = as_user(*user, transport_kind);
  }
  caller.origin = origin;
  return caller;
}

const User* AccessPolicy::find_user(std::string_view name) const {
  const auto found =
      std::find_if(users.begin(), users.end(), [&](const User& user) { return user.name == name; });
  return found == users.end() ? nullptr : &*found;
}

Caller AccessPolicy::identify(const SignIn& sign_in, std::string_view purpose, std::string_view origin,
                              TransportKind transport_kind, Clock::time_point now) {
  Caller caller{transport_kind, AuthResult::wrong_token, view_of_transport(transport_kind)};
  Browser* const browser = browsers.find(sign_in.browser);
  const bool is_answer =
      browser != nullptr && browser->origin == origin && challenges.is_valid(sign_in.nonce, now) &&
      p256_verifies(browser->key, sign_in_message(purpose, browsers.daemon_id(), origin, sign_in),
                    sign_in.signature) &&
      browser->use(sign_in.nonce, now);
  if (is_answer && browser->credential == credential_of(browser->user)) {
    if (browser->user.empty()) {
      caller.auth_result = AuthResult::owner;
    } else {
      caller = as_user(*find_user(browser->user), transport_kind);
    }
    caller.browser = browser->id;
    browser->used_ms = std::max(browser->used_ms, wall_now_ms());
    if (browser_used) browser_used();
  }
  caller.origin = origin;
  return caller;
}

std::string AccessPolicy::credential_of(std::string_view user) const {
  constexpr std::size_t digits = 32;
  const User* const found = user.empty() ? nullptr : find_user(user);
  if (!user.empty() && found == nullptr) return {};
  return sha256_hex("earshot browsers\n" + (found ? found->token_sha256 : sha256_hex(token)))
      .substr(0, digits);
}

View AccessPolicy::view_of(std::string_view user, TransportKind transport_kind) const {
  const User* const found = find_user(user);
  return found ? as_user(*found, transport_kind).view : view_of_transport(transport_kind);
}

Audience AccessPolicy::audience_of(const Caller& caller) const {
  if (caller.view == View::meta) return Audience::meta;
  return !redact && caller.transport_kind == TransportKind::unix_socket ? Audience::raw : Audience::full;
}

bool may_see(const Filter& allowed, const SessionStore& sessions, const Session& session) {
  if (!includes(allowed, sessions, session, session.project)) return false;
  if (allowed.project.empty()) return true;
  return session.other_projects.size() < Session::projects_max &&
         std::all_of(session.other_projects.begin(), session.other_projects.end(),
                     [&](const std::string& each) { return includes(allowed, sessions, session, each); }) &&
         std::all_of(session.members.begin(), session.members.end(), [&](const Member& member) {
           return may_see(allowed, sessions, session, *member.stream);
         });
}

bool may_see(const Filter& allowed, const SessionStore& sessions, const Session& session,
             const tail::Stream& stream) {
  return includes(allowed, sessions, session, project_of(session, stream));
}

bool may_see_removed(const Filter& allowed, const SessionStore& sessions, const Session& session,
                     std::uint32_t stream) {
  const std::string* const project = sessions.project_of_removed(stream);
  return project ? includes(allowed, sessions, session, *project) : may_see(allowed, sessions, session);
}

bool may_see_by_name(const Filter& allowed, const SessionStore& sessions, std::string_view session) {
  return allowed.empty() || (!session.empty() && allowed.matches_name(sessions.host_of(session), session));
}

// --- Audit ---

void Audit::log_change(std::string_view who, std::string_view what, std::string_view result) {
  const std::string line = std::string(who) + '\n' + std::string(result);
  if (line != last_) log(who, what, result);
}

void Audit::log(std::string_view who, std::string_view what, std::string_view result) {
  if (address_.empty()) return;
  last_ = std::string(who) + '\n' + std::string(result);
  // A logger of its own, which only the level `off` silences (log.cpp); tests may have none.
  auto logger = spdlog::get("audit");
  if (!logger) logger = spdlog::default_logger();
  log_to(*logger, spdlog::level::info, "audit: {} from {} requests {} and {}", who, address_, what, result);
}

}  // namespace earshot::serve
