#include "core/assembler.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <utility>

#include "base/utf8.hpp"
#include "core/event_json.hpp"

namespace earshot {
namespace {

// Sets `place` when the record says something else; what changed goes into an update.
void change(std::string& place, std::string_view said, event::OptionalText& changed) {
  if (said.empty() || place == said) return;
  place = said;
  changed = place;
}

}  // namespace

Assembler::Assembler(std::string own_agent, std::string_view program, std::uint64_t key,
                     const TextFilter* filter)
    : own_agent_(std::move(own_agent)), key_(key), filter_(filter), chains_(1) {
  state_.program = program;
  chains_[own_chain].agent = own_agent_;
}

std::uint64_t Assembler::hash(std::string_view text, std::uint64_t seed) const {
  return XXH3_64bits_withSeed(text.data(), text.size(), key_ ^ seed);
}

std::string_view Assembler::beginning(std::string_view text) const {
  return cut_utf8(text, StreamState::input_preview_bytes + (filter_ ? filter_->reach() : 0));
}

void Assembler::settle() const {
  std::string scratch;
  const auto make = [&](std::string& text, unsigned which) {
    if (!(state_due_ & which)) return;
    const Beginning shown = clean_beginning(filter_, text, StreamState::input_preview_bytes, scratch);
    text = std::string(shown.text);  // with no more memory than that
  };
  make(state_.turn_prompt, prompt_due);
  make(state_.last_text, text_due);
  state_due_ = 0;
  for (OpenTool& tool : state_.tools) {
    if (!std::exchange(tool.input_is_raw, false)) continue;
    std::string shown;
    append_json(shown, tool.input, StreamState::input_preview_bytes, filter_);
    tool.input = std::move(shown);
  }
}

void Assembler::begin_line(std::uint64_t line_offset, const Cursor& end, EventSink& sink) {
  line_offset_ = line_offset;
  cursor_ = end;
  index_ = 0;
  sink_ = &sink;
}

void Assembler::emit(EventBody body) {
  cursor_.index = ++index_;
  last_event_ = cursor_;
  ++counts_.events;
  const Event event{cursor_,
                    record_ ? record_->time : std::string_view{},
                    record_ ? record_->time_ms : 0,
                    state_.turn,
                    record_ ? std::string_view(chains_[chain_].agent) : std::string_view(own_agent_),
                    std::move(body)};
  sink_->on_event(event);
}

void Assembler::skipped(const event::LineSkipped& lines) {
  record_ = nullptr;
  if (!state_.warmup) emit(lines);
}

void Assembler::count_type(std::string_view type, bool unknown) {
  constexpr std::size_t name_bytes_max = 64;
  type = cut_utf8(type.empty() ? "(no type)" : type, name_bytes_max);
  const auto count = [&](auto& table) {
    auto found = table.find(type);
    if (found == table.end())
      found =
          table.emplace(table.size() < type_names_max ? std::string(type) : std::string("(other)"), 0).first;
    ++found->second;
  };
  count(counts_.types);
  if (unknown) count(counts_.unknown_types);
}

void Assembler::record(const Record& record) {
  record_ = &record;
  chain_ = own_chain;
  count_type(record.type, record.unknown);
  ++counts_.records;
  name_ = "@" + std::to_string(line_offset_);
  if (session_.empty() && !record.session.empty()) session_ = record.session;
  if (state_.warmup || !take_uuid()) return;
  chain_ = chain_of();
  if (record.deleted) return;
  if (record.has_turn_position) has_turn_positions_ = true;
  const bool dropped = drops_warmup();
  if (state_.warmup) return;
  emit_session_changes();
  if (dropped) return;
  if (record.time_ms > state_.last_activity_ms) {
    state_.last_activity_ms = record.time_ms;
    state_.last_activity = record.time;
  }

  if (own() && record.author == Record::Author::assistant) {
    const bool belongs = !record.message.empty() && record.message == finished_message_;
    if (!state_.turn_open && !belongs) start_turn(std::nullopt, hook_feedback_ ? "hook" : "unknown");
    if (!record.message.empty()) message_ = record.message;
  }
  if (record.relayed) return apply_relayed(*record.relayed);
  for (const Fact& one : record.facts) std::visit([this](const auto& fact) { apply(fact); }, one);
  if (record.aborted) interrupt();
  remember_last();
}

// Whether the record is new. Its uuid is known from now on, be the record told or not.
bool Assembler::take_uuid() {
  if (record_->uuid.empty()) return true;
  const std::uint64_t id = hash(record_->uuid);
  if (!uuids_.insert(id)) {
    ++counts_.duplicates;
    return false;
  }
  if (waiting_titles_.empty()) return true;
  const auto waits = std::find_if(waiting_titles_.begin(), waiting_titles_.end(),
                                  [&](const auto& one) { return one.first == id; });
  if (waits != waiting_titles_.end()) {
    titles_[static_cast<int>(fact::Title::Kind::summary)] = std::move(waits->second);
    waiting_titles_.erase(waits);
  }
  return true;
}

// An inline sidechain is named after its root: the first record of it whose parent is null, unknown or
// outside the sidechain.
std::uint32_t Assembler::chain_of() {
  if (!record_->sidechain || !own_agent_.empty()) return own_chain;
  std::uint32_t chain = own_chain;
  if (!record_->parent.empty()) {
    if (const auto* known = chain_of_uuid_.find(hash(record_->parent))) chain = *known;
  } else if (!record_->has_parent_key) {
    chain = side_seen_last_;
  }
  if (chain == own_chain && chains_.size() > chains_max) chain = static_cast<std::uint32_t>(chains_max);
  if (chain == own_chain) {
    chain = static_cast<std::uint32_t>(chains_.size());
    chains_.emplace_back();
    chains_.back().agent = record_->uuid.empty() ? name_ : std::string(record_->uuid);
  }
  bool fresh = false;
  if (!record_->uuid.empty()) chain_of_uuid_.insert(hash(record_->uuid), chain, fresh);
  return side_seen_last_ = chain;
}

// Internal cache warm-ups look like agents whose first user text is one word.
bool Assembler::drops_warmup() {
  Chain& chain = chains_[chain_];
  if (record_->author == Record::Author::user && !chain.user_record_seen && (!own() || !own_agent_.empty())) {
    chain.user_record_seen = true;
    chain.warmup = record_->first_user_text == "Warmup";
    if (chain.warmup && own()) state_.warmup = true;
  }
  return chain.warmup;
}

void Assembler::emit_session_changes() {
  event::SessionUpdated changed;
  const Record& r = *record_;
  const bool first = !state_.started && !r.uuid.empty();
  if (own() || first) {
    change(state_.cwd, r.cwd, changed.cwd);
    change(state_.git_branch, r.git_branch.value_or(""), changed.git_branch);
    change(state_.version, r.version, changed.version);
    if (state_.project.empty()) state_.project = state_.cwd;
  }
  if (own() && r.author == Record::Author::assistant) change(state_.model, r.model, changed.model);
  for (const Fact& one : r.facts) {
    if (const auto* mode = std::get_if<fact::Mode>(&one)) change(state_.mode, mode->mode, changed.mode);
    if (const auto* mode = std::get_if<fact::PermissionMode>(&one); mode && own())
      change(state_.permission_mode, mode->mode, changed.permission_mode);
    const auto* title = std::get_if<fact::Title>(&one);
    if (!title) continue;
    if (title->kind != fact::Title::Kind::summary) {
      titles_[static_cast<int>(title->kind)] = title->text;
      continue;
    }
    if (summaries_lead_ && state_.continues.empty()) state_.continues = title->leaf;
    if (const std::uint64_t leaf = hash(title->leaf); uuids_.contains(leaf))
      titles_[static_cast<int>(title->kind)] = title->text;
    else if (waiting_titles_.size() < titles_max)
      waiting_titles_.emplace_back(leaf, title->text);
  }
  const bool is_summary = r.type == "summary";
  if (!is_summary) summaries_lead_ = false;
  const auto title = std::find_if(std::begin(titles_), std::end(titles_),
                                  [](const std::string& one) { return !one.empty(); });
  if (title != std::end(titles_)) change(state_.title, *title, changed.title);

  if (first) {
    state_.started = true;
    emit(event::SessionStarted{state_.dialect, state_.version, state_.cwd, state_.git_branch, state_.project,
                               state_.title, state_.continues, state_.mode, state_.permission_mode});
    // The model is not among what session.started says.
    changed = event::SessionUpdated{.title = {},
                                    .cwd = {},
                                    .git_branch = {},
                                    .model = changed.model,
                                    .version = {},
                                    .mode = {},
                                    .permission_mode = {}};
  }
  if (!state_.started) return;
  if (changed.title || changed.cwd || changed.git_branch || changed.model || changed.version ||
      changed.mode || changed.permission_mode)
    emit(changed);
}

void Assembler::remember_last() {
  if (!own() || record_->outside_turn ||
      (record_->author != Record::Author::user && record_->author != Record::Author::assistant))
    return;
  last_ = Last::other;
  for (const Fact& one : record_->facts) {
    if (std::holds_alternative<fact::Invocation>(one)) last_ = Last::call;
    if (std::holds_alternative<fact::Result>(one)) last_ = Last::result;
    if (const auto* said = std::get_if<fact::MessageBlock>(&one))
      last_ = said->kind == "text" ? Last::text : Last::other;
  }
  if (record_->time_ms) last_ms_ = record_->time_ms;
}

void Assembler::start_turn(event::OptionalText prompt, std::string_view origin) {
  const bool inferred = last_ == Last::text && open_.empty();
  close_all("abandoned", true);
  if (state_.turn_open)
    finish_turn(inferred ? "completed" : "superseded", inferred, {}, std::nullopt, last_ms_);
  ++state_.turn;
  state_.turn_open = true;
  state_.turn_started = record_->time;
  state_.turn_started_ms = record_->time_ms;
  state_.turn_prompt = beginning(prompt.value_or(""));
  state_due_ |= prompt_due;
  last_ = Last::other;
  last_ms_ = record_->time_ms;
  turn_tools_ = 0;
  turn_usage_ = state_.usage;
  hook_feedback_ = false;
  finished_message_.clear();
  emit(event::TurnStarted{prompt, own_agent_.empty() ? origin : "agent"});
}

void Assembler::finish_turn(std::string_view outcome, bool inferred, std::string_view stop_reason,
                            std::optional<std::int64_t> duration_ms, std::int64_t end_ms) {
  if (!duration_ms && end_ms && state_.turn_started_ms)
    duration_ms = std::max<std::int64_t>(0, end_ms - state_.turn_started_ms);
  const auto since = [](std::uint64_t now, std::uint64_t then) { return now > then ? now - then : 0; };
  const Usage& now = state_.usage;
  const Usage used{since(now.input, turn_usage_.input), since(now.output, turn_usage_.output),
                   since(now.cache_read, turn_usage_.cache_read),
                   since(now.cache_write, turn_usage_.cache_write)};
  state_.turn_open = false;
  state_.last_outcome = outcome;
  state_.last_finished = record_->time;
  finished_message_ = message_;
  hook_feedback_ = false;
  emit(event::TurnFinished{outcome, inferred, stop_reason, duration_ms, turn_tools_, used});
}

void Assembler::interrupt() {
  close_all("interrupted", false);
  if (own() && state_.turn_open)
    finish_turn("interrupted", false, {}, std::nullopt, record_->time_ms ? record_->time_ms : last_ms_);
}

std::size_t Assembler::memory_bytes() const {
  std::size_t bytes = sizeof *this + uuids_.memory_bytes() + chain_of_uuid_.memory_bytes() +
                      calls_.memory_bytes() + usage_.memory_bytes() + finished_tasks_.memory_bytes();
  bytes += chains_.capacity() * sizeof(Chain) + open_.size() * (sizeof(Call) + 64);
  bytes += (large_.size() + costs_.size() + resumed_.size() + early_.size()) * 64;
  bytes += state_.tools.capacity() * sizeof(OpenTool) + state_.todos.capacity() * sizeof(Todo) +
           state_.agents.capacity() * sizeof(RunningAgent);
  for (const OpenTool& tool : state_.tools) bytes += tool.input.capacity();
  return bytes;
}

}  // namespace earshot
