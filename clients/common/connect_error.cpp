#include "common/connect_error.hpp"

#include "common/diagnostics.hpp"

namespace earshot::common {
namespace {

constexpr int close_bad_token = 4501;

bool is_about_token(const Outcome& outcome) {
  return outcome.http_status == 401 || outcome.close_code == close_bad_token;
}

std::string advice(const Outcome& outcome, const DaemonAddress& door) {
  if (outcome.ending == Ending::unreachable) {
    return "Is the daemon running? Start it with:  earshotd      What is wrong is told by:  earshot doctor";
  }
  if (is_about_token(outcome)) {
    if (door.token.empty())
      return "The daemon wants its token: name its state directory with --state, or the file with "
             "--token-file.";
    return "The token is not this daemon's: it lies in the daemon's own state directory (--state DIR or "
           "--token-file FILE).";
  }
  if (outcome.http_status == 403 && door.endpoint.is_unix())
    return "The socket is another user's: a daemon serves its own user only. Start yours with:  earshotd";
  if (outcome.http_status == 503) return "The daemon has as many connections as it takes: try again later.";
  if (outcome.http_status == 429) return "The daemon is asked too often: try again later.";
  if (outcome.http_status != 0) return "Something listens there, but it does not take us: is it earshotd?";
  return {};
}

}  // namespace

bool is_final(const Outcome& outcome) {
  if (outcome.ending == Ending::refused) return outcome.http_status != 503 && outcome.http_status != 429;
  return outcome.close_code >= 4500 && outcome.close_code <= 4999;
}

std::string explain(const Visit& visit, const Doors& doors) {
  const Outcome& outcome = visit.last();
  const DaemonAddress& door = visit.door(doors);
  const bool no_token = door.token.empty() && !door.endpoint.is_unix();
  const char* what = outcome.ending == Ending::unreachable ? "cannot reach the daemon at "
                     : is_about_token(outcome) && no_token ? "the daemon wants a token at "
                     : is_about_token(outcome)             ? "the daemon refused the token at "
                     : outcome.ending == Ending::refused   ? "no earshot daemon answers at "
                                                           : "lost the daemon at ";
  std::string text = what + for_stderr(door.endpoint.url()) + ": " + for_stderr(outcome.text) + "\n";
  for (std::size_t i = 0; i + 1 < visit.outcomes.size(); ++i)
    text +=
        "  nor at " + for_stderr(doors[i].endpoint.url()) + ": " + for_stderr(visit.outcomes[i].text) + "\n";
  text += "  address: " + for_stderr(door.address_from);
  if (!door.token_from.empty()) text += "\n  token:   " + for_stderr(door.token_from);
  if (!door.token_trouble.empty()) text += " (" + for_stderr(door.token_trouble) + ")";
  const std::string next = advice(outcome, door);
  return next.empty() ? text : text + "\n  " + next;
}

}  // namespace earshot::common
