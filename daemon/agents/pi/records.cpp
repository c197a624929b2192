#include "agents/pi/records.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>

#include "agents/content.hpp"
#include "base/json_scan.hpp"
#include "base/quantities.hpp"
#include "base/text.hpp"

namespace earshot::pi {
namespace {

// ---- Errors, by their text. Only letters and digits count, in lower case.

constexpr std::string_view limit_errors[] = {"gousagelimiterror",
                                             "freeusagelimiterror",
                                             "monthlyusagelimitreached",
                                             "availablebalance",
                                             "insufficientquota",
                                             "outofbudget",
                                             "quotaexceeded",
                                             "billing"};
// Pi repeats the request after these, and after a compaction for the overflow ones.
constexpr std::string_view passing_errors[] = {"overloaded",
                                               "currentlyexperiencinghighdemand",
                                               "ratelimit",
                                               "toomanyrequests",
                                               "429",
                                               "500",
                                               "502",
                                               "503",
                                               "504",
                                               "520",
                                               "524",
                                               "serviceunavailable",
                                               "servererror",
                                               "internalerror",
                                               "providerreturnederror",
                                               "exceededrequestbufferlimit",
                                               "networkerror",
                                               "connectionerror",
                                               "connectionrefused",
                                               "connectionlost",
                                               "othersideclosed",
                                               "fetchfailed",
                                               "getaddrinfo",
                                               "enotfound",
                                               "eaiagain",
                                               "upstreamconnect",
                                               "resetbeforeheaders",
                                               "sockethangup",
                                               "socketconnectionwasclosed",
                                               "timedout",
                                               "timeout",
                                               "terminated",
                                               "websocketclosed",
                                               "websocketerror",
                                               "endedwithout",
                                               "endedbefore",
                                               "http2requestdidnotgetaresponse",
                                               "retrydelay",
                                               "retryyourrequest",
                                               "tryyourrequestagain",
                                               "resourceexhausted"};
constexpr std::string_view overflow_errors[] = {"promptistoolong",
                                                "requesttoolarge",
                                                "inputistoolong",
                                                "exceedsthecontextwindow",
                                                "exceedsthemaximum",
                                                "maximumpromptlengthis",
                                                "reducethelengthofthemessages",
                                                "maximumcontextlength",
                                                "exceedsthelimitof",
                                                "exceedstheavailablecontextsize",
                                                "greaterthanthecontextlength",
                                                "contextwindowexceedslimit",
                                                "exceededmodeltokenlimit",
                                                "modelcontextwindowexceeded",
                                                "prompttoolong",
                                                "contextlengthexceeded",
                                                "toomanytokens",
                                                "tokenlimitexceeded",
                                                "400statuscodenobody",
                                                "413statuscodenobody"};
constexpr std::string_view abort_errors[] = {"thisoperationwasaborted", "operationaborted",
                                             "operationwasaborted", "requestwasaborted", "requestaborted"};
constexpr int tries_max = 3;  // of one request, by default

std::string letters_and_digits(std::string_view text) {
  std::string kept;
  for (const char c : text) {
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) kept += c;
    if (c >= 'A' && c <= 'Z') kept += static_cast<char>(c - 'A' + 'a');
  }
  return kept;
}

bool contains_any(std::string_view text, std::span<const std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return text.find(part) != std::string_view::npos; });
}

bool is_abort(std::string_view error) {
  return std::any_of(std::begin(abort_errors), std::end(abort_errors),
                     [&](std::string_view begin) { return error.starts_with(begin); });
}

// The HTTP status that an error's text begins with: `529: …`, `Error: 401 …`.
std::optional<std::int64_t> status_of(std::string_view error) {
  const auto skip_blanks = [&] { error.remove_prefix(std::min(error.find_first_not_of(' '), error.size())); };
  skip_blanks();
  if (error.starts_with("Error:")) error.remove_prefix(6);
  skip_blanks();
  const std::size_t digits = std::min(error.find_first_not_of("0123456789"), error.size());
  if (digits != 3 || (error[0] != '4' && error[0] != '5')) return std::nullopt;
  return (error[0] - '0') * 100 + (error[1] - '0') * 10 + (error[2] - '0');
}

// ---- Results

std::string_view result_outcome(std::string_view text, bool is_error) {
  if (!is_error) return "ok";
  constexpr std::string_view subjects[] = {"operation", "command", "tool execution", "request"};
  for (const std::string_view subject : subjects) {
    std::string_view rest = text;
    if (!skip_word(rest, subject)) continue;
    skip_word(rest, " was");
    if (skip_word(rest, " aborted")) return "interrupted";
  }
  if (std::string_view rest = text; skip_word(rest, "skipped due to queued user message"))
    return "interrupted";
  if (text.ends_with("Command aborted")) return "interrupted";
  return text.starts_with("Tool execution was blocked") ? "denied" : "error";
}

constexpr std::string_view ignored_types[] = {"thinking_level_change", "custom", "label", "context_edit"};
constexpr std::string_view ignored_roles[] = {"bashExecution", "system", "branchSummary",
                                              "compactionSummary"};

class Records final : public RecordReader {
 public:
  void read(const Value& json, NestedJson&, Assembler& to) override {
    to.begin_record(json.text_of("timestamp"));
    const std::string_view type = json.text_of("type");
    if (type == "session") return read_header(json, to);
    if (type == "message") return read_message(json, to);
    const auto rule =
        std::find_if(std::begin(rules), std::end(rules), [&](const Rule& one) { return one.type == type; });
    const bool has_rule = rule != std::end(rules);
    to.count_type(type, !has_rule && !is_one_of(type, ignored_types));
    if (is_event_record(json, to) && has_rule) (this->*rule->read)(json, to);
  }
  std::size_t memory_bytes() const override { return sizeof *this; }

 private:
  enum class Last { nothing, user, assistant, result };
  struct Rule {
    std::string_view type;
    void (Records::*read)(const Value&, Assembler&);
  };
  static const Rule rules[6];

  // False for records before the header and for those that the stream has already.
  bool is_event_record(const Value& json, Assembler& to) {
    id_ = json.text_of("id");
    request_ = to.request_id(id_);
    const bool is_new = id_.empty() || to.is_new(id_);
    if (id_.empty()) id_ = name_ = to.record_name();
    return to.started() && is_new;
  }

  void read_header(const Value& json, Assembler& to) {
    to.count_type("session", false);
    if (!to.started()) {
      to.set_recorded_session(json.text_of("id"));
      event::SessionStarted session;
      session.cwd = json.text_of("cwd");
      std::string_view parent = json.text_of("parentSession");
      if (parent.empty()) parent = json.text_of("branchedFrom");
      session.continues = session_in_path(parent);
      to.start_session(session);
    }
    event::SessionUpdated changed;
    changed.cwd = json.text_of("cwd");
    changed.model = json.text_of("modelId");
    to.update_session(changed);
  }

  static std::string_view session_in_path(std::string_view path) {
    path.remove_prefix(path.find_last_of("/\\") + 1);
    if (path.ends_with(".jsonl")) path.remove_suffix(6);
    return session_of(path);
  }

  void read_message(const Value& json, Assembler& to) {
    const Value message = json.member("message");
    const std::string_view role = message ? message.text_of("role") : std::string_view{};
    const bool is_custom = role == "custom" || role == "hookMessage";
    const bool is_known = role == "user" || role == "assistant" || role == "toolResult" || is_custom ||
                          is_one_of(role, ignored_roles);
    std::string type = "message/";
    to.count_type(type.append(role), !is_known);
    if (!is_event_record(json, to) || !message) return;
    if (role == "user") read_user(message, to);
    if (role == "assistant") read_assistant(message, to);
    if (role == "toolResult") read_result(message, to);
    if (is_custom) read_custom(message, to);
  }

  // A prompt, or a message that joins the running turn.
  void read_user(const Value& message, Assembler& to) {
    Content content = content_of(message.member("content"));
    const bool has_text = content.text && !is_blank(*content.text);
    if (!has_text && content.media.empty()) return;
    const auto typed_ms = message.int_of("timestamp");
    const OptionalText text = has_text ? OptionalText(*content.text) : std::nullopt;
    const bool in_time = !typed_ms || !result_ms_ || *typed_ms <= result_ms_ + steering_ms_max;
    if (to.raw_state().turn_open && to.open_calls() == 0 && last_ == Last::result && in_time) {
      if (text) to.add_message("user", "text", text);
    } else {
      const bool queued = !to.raw_state().turn_open && typed_ms && work_ms_ && *typed_ms < work_ms_;
      start_turn(text, queued ? "queued" : "human", to);
    }
    for (const Media& one : content.media) to.add_message("user", one.kind, std::nullopt, {}, {}, one);
    remember(Last::user, to);
  }

  void read_assistant(const Value& message, Assembler& to) {
    const std::string_view model = message.text_of("model");
    event::SessionUpdated changed;
    changed.model = model;
    to.update_session(changed);
    if (!to.raw_state().turn_open) start_turn(std::nullopt, extension_spoke_ ? "hook" : "unknown", to);
    has_text_ = false;
    error_passes_ = false;
    const std::vector<std::string> calls = read_blocks(message, model, to);
    add_usage(message, model, true, to);
    remember(Last::assistant, to);

    const std::string_view reason = message.text_of("stopReason");
    const std::string_view error = message.text_of("errorMessage");
    const std::string kept = letters_and_digits(error);
    const bool aborted = reason == "aborted" || (reason == "error" && is_abort(kept));
    if (aborted) {
      to.close_calls("interrupted");
    } else if (reason == "error") {
      for (const std::string& call : calls) {
        event::ToolFinished finished;
        finished.outcome = "interrupted";
        to.finish_call(call, std::move(finished));
      }
    }
    if (aborted) return finish_turn("interrupted", "aborted", to);
    if (reason == "error") return fail(error, kept, to);
    errors_in_row_ = 0;
    if ((reason == "stop" || reason == "length") && to.open_calls() == 0)
      finish_turn("completed", reason, to);
  }

  void fail(std::string_view error, std::string_view kept, Assembler& to) {
    ++errors_in_row_;
    error_passes_ = errors_in_row_ <= tries_max && !contains_any(kept, limit_errors) &&
                    (contains_any(kept, passing_errors) || contains_any(kept, overflow_errors));
    event::ApiFailed failed;
    failed.status = status_of(error);
    failed.error = error;
    failed.attempt = errors_in_row_;
    failed.fatal = !error_passes_;
    to.emit(failed);
    if (!error_passes_) finish_turn("failed", "error", to);
  }

  // Text, thinking and calls in their order. Returns the ids of the calls that are new.
  std::vector<std::string> read_blocks(const Value& message, std::string_view model, Assembler& to) {
    std::vector<std::string> calls;
    const Value content = message.member("content");
    if (content.is_string()) add_text(content.as_text(), model, to);
    std::size_t n = 0;
    for (const Value block : content.items()) {
      const std::string_view type = block.text_of("type");
      if (type == "text") add_text(block.text_of("text"), model, to);
      if (type == "thinking") {
        if (const auto text = block.text_of("thinking"); !text.empty())
          to.add_message("assistant", "thinking", text, id_, model);
      }
      if (type == "toolCall") {
        std::string call(block.text_of("id"));
        if (call.empty()) call = to.record_name() + "." + std::to_string(n);
        std::string_view input = block.member("arguments").raw();
        if (input == "null") input = {};
        Assembler::Call made;
        made.call = call, made.tool = block.text_of("name");
        if (to.invoke(std::move(made), Json{input}, id_)) calls.push_back(std::move(call));
        to.abandon_oldest_calls();
      }
      ++n;
    }
    return calls;
  }

  void add_text(std::string_view text, std::string_view model, Assembler& to) {
    if (text.empty()) return;
    has_text_ = true;
    to.add_message("assistant", "text", text, id_, model);
  }

  void read_result(const Value& message, Assembler& to) {
    const Content content = content_of(message.member("content"));
    event::ToolFinished finished;
    finished.outcome = result_outcome(content.text.value_or(""), message.bool_of("isError"));
    if (content.text) finished.output = std::string_view(*content.text);
    finished.media = content.media;
    to.finish_call(message.text_of("toolCallId"), std::move(finished));
    add_usage(message, {}, false, to);
    remember(Last::result, to);
  }

  void read_custom(const Value& json, Assembler& to) {
    extension_spoke_ = true;
    const Value display = json.member("display");
    if (display && display.is_bool() && !display.as_bool()) return;
    const Content content = content_of(json.member("content"));
    if (content.text && !content.text->empty()) to.add_message("system", "text", *content.text);
    for (const Media& one : content.media) to.add_message("system", one.kind, std::nullopt, {}, {}, one);
  }

  void read_model(const Value& json, Assembler& to) {
    event::SessionUpdated changed;
    changed.model = json.text_of("modelId");
    to.update_session(changed);
  }
  void read_info(const Value& json, Assembler& to) {
    event::SessionUpdated changed;
    changed.title = json.text_of("name");
    to.update_session(changed);
  }
  void read_compaction(const Value& json, Assembler& to) {
    event::CompactionFinished finished;
    if (const auto tokens = json.int_of("tokensBefore"))
      finished.pre_tokens = static_cast<std::uint64_t>(std::max<std::int64_t>(0, *tokens));
    finished.kind = "full";
    to.emit(finished);
    read_summary(json, to);
  }
  void read_summary(const Value& json, Assembler& to) {
    if (const auto text = json.text_of("summary"); !text.empty()) to.add_message("summary", "text", text);
    add_usage(json, {}, false, to);
  }
  void read_usage(const Value& json, Assembler& to) { add_usage(json, json.text_of("model"), false, to); }

  void add_usage(const Value& json, std::string_view model, bool is_assistant, Assembler& to) {
    const Value usage = json.member("usage");
    if (!usage) return;
    const auto count = [&](std::string_view key) { return usage.count_of(key).value_or(0); };
    const Usage used{count("input"), count("output"), count("cacheRead"), count("cacheWrite")};
    StreamState& state = to.mutable_state();
    if (const std::uint64_t context = used.input + used.cache_read + used.cache_write;
        is_assistant && context > 0)
      state.context_tokens = context;
    std::optional<double> usd = usage.member("cost").member("total").as_double();
    if (usd) usd = std::max(0.0, *usd);
    if (usd && !state.cost_usd) state.cost_usd = 0;
    if (used == Usage{} && !(usd.value_or(0) > 0)) return;
    to.account({request_, id_, model, model.empty() ? std::string_view(state.model) : model, used, usd});
  }

  void start_turn(OptionalText prompt, std::string_view origin, Assembler& to) {
    const bool had_open_calls = to.open_calls() > 0;
    to.close_calls("abandoned");
    if (to.raw_state().turn_open) {
      const bool completed = has_text_ && !had_open_calls;
      const std::string_view outcome = error_passes_ ? "failed" : completed ? "completed" : "superseded";
      to.finish_turn(outcome, {}, error_passes_ || completed, std::nullopt, last_ms_);
    }
    extension_spoke_ = has_text_ = error_passes_ = false;
    errors_in_row_ = 0;
    to.start_turn(prompt, origin);
  }

  void finish_turn(std::string_view outcome, std::string_view stop_reason, Assembler& to) {
    to.finish_turn(outcome, stop_reason, false, std::nullopt, to.time_ms() ? to.time_ms() : last_ms_);
    extension_spoke_ = false;
  }

  // Of the last user, assistant or result record.
  void remember(Last last, const Assembler& to) {
    last_ = last;
    if (last == Last::result) result_ms_ = to.time_ms();
    if (to.time_ms() == 0) return;
    last_ms_ = to.time_ms();
    if (last != Last::user) work_ms_ = last_ms_;
  }

  static constexpr std::int64_t steering_ms_max = 1000;  // after the last result

  std::string_view id_;        // of the current record, or name_
  std::string name_;           // of a record without an id
  std::uint64_t request_ = 0;  // Assembler::request_id() of the current record
  Last last_ = Last::nothing;
  // Times; 0: none. Of the last of these records that has one, of the last such one that is not the user's,
  // and of the last result.
  std::int64_t last_ms_ = 0, work_ms_ = 0, result_ms_ = 0;
  bool has_text_ = false;         // the last assistant record
  bool error_passes_ = false;     // the last assistant record: Pi repeats the request
  bool extension_spoke_ = false;  // since the last turn ended
  int errors_in_row_ = 0;
};

const Records::Rule Records::rules[6] = {
    {"model_change", &Records::read_model},    {"session_info", &Records::read_info},
    {"compaction", &Records::read_compaction}, {"branch_summary", &Records::read_summary},
    {"custom_message", &Records::read_custom}, {"usage", &Records::read_usage},
};

}  // namespace

std::unique_ptr<RecordReader> make_reader() { return std::make_unique<Records>(); }

bool is_header(const Value& record) {
  return record.text_of("type") == "session";  // old ones have no `cwd`
}

std::string_view session_of(std::string_view stem) {
  const std::size_t separator = stem.find('_');
  return separator == std::string_view::npos ? stem : stem.substr(separator + 1);
}

}  // namespace earshot::pi
