#include "core/dialects/fields.hpp"

#include <array>
#include <utility>

#include "base/time.hpp"

namespace earshot::dialects {
namespace {

struct Named {
  std::string_view name;
  Value Fields::*place;
};

#define FIELD(name) \
  { #name, &Fields::name }
constexpr Named table[] = {FIELD(type),
                           FIELD(subtype),
                           FIELD(uuid),
                           FIELD(parentUuid),
                           FIELD(timestamp),
                           FIELD(sessionId),
                           FIELD(version),
                           FIELD(cwd),
                           FIELD(gitBranch),
                           FIELD(message),
                           FIELD(isSidechain),
                           FIELD(isMeta),
                           FIELD(isDeleted),
                           FIELD(isAborted),
                           FIELD(isCompactSummary),
                           FIELD(isApiErrorMessage),
                           FIELD(toolUseResult),
                           FIELD(toolDenialKind),
                           FIELD(toolDenialBeforeRun),
                           FIELD(permissionDecision),
                           FIELD(permissionMode),
                           FIELD(promptSource),
                           FIELD(origin),
                           FIELD(turnPosition),
                           FIELD(requestId),
                           FIELD(costUSD),
                           FIELD(durationMs),
                           FIELD(content),
                           FIELD(attachment),
                           FIELD(data),
                           FIELD(parentToolUseID),
                           FIELD(operation),
                           FIELD(snapshot),
                           FIELD(messageId),
                           FIELD(trackingPath),
                           FIELD(summary),
                           FIELD(leafUuid),
                           FIELD(aiTitle),
                           FIELD(customTitle),
                           FIELD(agentName),
                           FIELD(mode),
                           FIELD(totalCostUSD),
                           FIELD(compactMetadata),
                           FIELD(microcompactMetadata),
                           FIELD(error),
                           FIELD(apiErrorStatus),
                           FIELD(retryInMs),
                           FIELD(retryAttempt),
                           FIELD(maxRetries),
                           FIELD(preventedContinuation),
                           FIELD(hookErrors),
                           FIELD(toolName),
                           FIELD(toolArguments),
                           FIELD(isError)};
#undef FIELD

// One place a name: a key is compared with the one name that may be it.
constexpr std::size_t places = 256;
constexpr std::size_t place_of(std::string_view name) {
  const auto at = [&](std::size_t n) { return static_cast<unsigned char>(name[n]); };
  return (name.size() * 16 + at(0) * 30 + at(name.size() / 2) + at(name.size() - 1) * 7) % places;
}
static_assert(
    [] {
      std::array<bool, places> taken{};
      for (const Named& one : table)
        if (std::exchange(taken[place_of(one.name)], true)) return false;
      return true;
    }(),
    "two names share a place: try other factors");

constexpr auto by_place = [] {
  std::array<Named, places> all{};
  for (const Named& one : table) all[place_of(one.name)] = one;
  return all;
}();

}  // namespace

Fields::Fields(const dom::element& json) {
  dom::object object;
  if (json.get_object().get(object)) return;
  for (const auto field : object) {
    if (field.key.empty()) continue;
    const Named& one = by_place[place_of(field.key)];
    if (one.name == field.key) this->*one.place = field.value;
  }
}

void read_header(const Fields& fields, Record& out) {
  out.uuid = text(fields.uuid);
  out.parent = text(fields.parentUuid);
  out.has_parent_key = fields.parentUuid.has_value();
  out.session = text(fields.sessionId);
  out.version = text(fields.version);
  out.cwd = text(fields.cwd);
  if (fields.gitBranch) out.git_branch = dom::text_or_absent(*fields.gitBranch);
  out.sidechain = truth(fields.isSidechain);
  out.deleted = truth(fields.isDeleted);
  out.aborted = truth(fields.isAborted);
  out.knows_positions = fields.turnPosition && fields.turnPosition->is_object();
  out.request = text(fields.requestId);
  if (!fields.timestamp) return;
  if (fields.timestamp->is_string()) {
    const std::string_view written = dom::text(*fields.timestamp);
    if (const auto ms = parse_time(written)) {
      out.time = written;
      out.time_ms = *ms;
    }
  } else if (const auto ms = dom::whole(*fields.timestamp);
             ms && *ms > 0 && *ms < 253'402'300'800'000) {  // year 10000
    out.time = out.keep(format_time(*ms));
    out.time_ms = *ms;
  }
}

Media media_of(std::string_view kind, const dom::element& block) {
  Media media{kind, {}, 0};
  if (const auto source = dom::member(block, "source")) {
    media.media_type = dom::text_of(*source, "media_type");
    std::string_view data = dom::text_of(*source, "data");
    if (dom::text_of(*source, "type") == "base64") {
      while (!data.empty() && data.back() == '=') data.remove_suffix(1);
      media.bytes = data.size() * 3 / 4;
    } else {
      media.bytes = data.size();
    }
  }
  return media;
}

std::optional<std::string_view> text_of_content(const Value& content, Record& out) {
  if (!content) return std::nullopt;
  if (content->is_string()) return dom::text(*content);
  dom::array blocks;
  if (content->get_array().get(blocks)) return std::nullopt;
  std::optional<std::string_view> found;
  std::string joined;
  bool several = false;
  for (const dom::element block : blocks) {
    const auto said = dom::text_of(block, "type") == "text" ? dom::member(block, "text") : Value{};
    if (!said || !said->is_string()) continue;
    if (!found) {
      found = dom::text(*said);
      continue;
    }
    if (!several) joined = *found;
    several = true;
    joined += '\n';
    joined += dom::text(*said);
  }
  return several ? out.keep(std::move(joined)) : found;
}

}  // namespace earshot::dialects
