#include "status/derive_status.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/time.hpp"
#include "status/pending_prompt.hpp"
#include "status/text.hpp"

namespace earshot::status {

namespace {

struct Word {
  std::string_view said, state, reason;
};
constexpr std::array words = {
    Word{"busy", "working", ""},
    Word{"idle", "idle", ""},
    Word{"shell", "idle", "background"},
    Word{"waiting", "waiting", "dialog"},
};
constexpr std::array waits = {
    Word{"permission prompt", "waiting", "permission"},
    Word{"input needed", "waiting", "question"},
};

const Word* find(const auto& table, std::string_view said) {
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const Word& word) { return word.said == said; });
  return found == table.end() ? nullptr : &*found;
}

Status made(std::string_view state, std::string_view reason, std::string_view source, std::string since) {
  Status status;
  status.state = state;
  status.reason = reason;
  status.source = source;
  status.since = std::move(since);
  return status;
}

/// A registry time, or the transcript's where the registry gives none.
std::string since_of(const RegistryEntry& entry, const TranscriptSummary& said) {
  std::string since = rfc3339(entry.said_ms());
  return since.empty() ? said.last_activity : since;
}

std::string later(const std::string& one, const std::string& other) {
  return parse_time(one).value_or(0) < parse_time(other).value_or(0) ? other : one;
}

Status ended(const Evidence& evidence, const TranscriptSummary& said) {
  std::string since;
  if (evidence.seen_alive)
    since = rfc3339(evidence.ended_ms);
  else
    since = later(evidence.entry ? rfc3339(evidence.entry->said_ms()) : std::string(), said.last_activity);
  return made("ended", "", "registry", std::move(since));
}

/// Wait reasons are refined by the open call; the call may also be one that the registry's word does not fit.
void join_call(Status& status, const TranscriptSummary& said, const std::set<std::string>& answered) {
  const OpenCall* call = newest_asking(said.calls);
  if (status.reason == "permission") {
    const std::vector<const OpenCall*> calls = askable(said.calls, answered);
    if (calls.size() > 1) status.detail = detail_of(calls);
    call = calls.size() == 1 ? calls.front() : nullptr;
  }
  if (!call) return;
  if (const std::string_view reason = asking_reason(*call); !reason.empty()) status.reason = reason;
  status.detail = detail_of(*call);
}

Status from_registry(const RegistryEntry& entry, const Word& word, const TranscriptSummary& said,
                     const std::set<std::string>& answered) {
  const Word* wait = word.state == "waiting" ? find(waits, entry.waiting_for) : nullptr;
  Status status = made(word.state, wait ? wait->reason : word.reason, "registry", since_of(entry, said));
  if (status.state == "waiting") join_call(status, said, answered);
  return status;
}

Status from_transcript(const Evidence& evidence, const TranscriptSummary& said) {
  if (!said.known)
    return made("unknown", "", "transcript", evidence.entry ? since_of(*evidence.entry, said) : "");
  if (const OpenCall* call = newest_asking(said.calls)) {
    Status status = made("waiting", asking_reason(*call), "transcript",
                         call->started.empty() ? said.last_activity : call->started);
    status.detail = detail_of(*call);
    return status;
  }
  if (!said.turn_open)
    return made("idle", "", "transcript",
                said.turn_finished.empty() ? said.last_activity : said.turn_finished);
  if (said.calls.empty() && evidence.quiet >= evidence.quiet_max)
    return made("unknown", "", "clock", rfc3339(said.last_growth_ms + evidence.quiet_max.count()));
  return made("working", "", "transcript",
              said.turn_started.empty() ? said.last_activity : said.turn_started);
}

Status while_compacting(const Evidence& evidence, Status status) {
  const bool agrees = status.state == "working" || status.state == "idle" || status.source == "clock";
  if (!agrees || status.state == "ended") return status;
  return made("working", "compaction", "transcript", rfc3339(evidence.compacting_ms));
}

bool has_ended(const Evidence& evidence, const TranscriptSummary& said) {
  if (!evidence.had_entry || (evidence.entry && evidence.life != Liveness::dead)) return false;
  const bool resumed = evidence.ended_ms && parse_time(said.turn_started).value_or(0) > evidence.ended_ms;
  return !resumed;
}

Status undisturbed(const Evidence& evidence, const TranscriptSummary& said) {
  if (has_ended(evidence, said)) return ended(evidence, said);
  if (evidence.entry && evidence.life == Liveness::foreign)
    return made("unknown", "", "registry", since_of(*evidence.entry, said));
  const Word* word =
      evidence.entry && evidence.life == Liveness::alive ? find(words, evidence.entry->status) : nullptr;
  static const std::set<std::string> none;
  const std::set<std::string>& answered = evidence.answered ? *evidence.answered : none;
  return word ? from_registry(*evidence.entry, *word, said, answered) : from_transcript(evidence, said);
}

}  // namespace

Status decide(const Evidence& evidence, const TranscriptSummary& said) {
  Status status = undisturbed(evidence, said);
  return evidence.compacting_ms ? while_compacting(evidence, std::move(status)) : status;
}

const OpenCall* named_call(const Status& status, const TranscriptSummary& said,
                           const std::set<std::string>& answered) {
  if (status.state != "waiting" || status.source != "registry") return nullptr;
  const std::vector<const OpenCall*> calls = askable(said.calls, answered);
  return calls.size() == 1 ? calls.front() : nullptr;
}

Status settle(const Status& previous, Status next) {
  if (previous.state != next.state || previous.reason != next.reason || previous.since.empty()) return next;
  const bool waits_anew = next.state == "waiting" && previous.source == "registry" &&
                          next.source == "registry" &&
                          parse_time(next.since).value_or(0) > parse_time(previous.since).value_or(0);
  if (!waits_anew) next.since = previous.since;
  return next;
}

}  // namespace earshot::status
