// The payloads of all frames but events: sessions, and what concerns a subscription or a connection.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "serve/stream/session_store.hpp"

namespace earshot::serve {

/// The payload of a `session` frame; uses the view and filter of `options`.
std::string session_payload(const Session& session, std::string_view host, const EncodeOptions& options = {},
                            const ModelTable& models = ModelTable::built_in());

/// The account's limits: of each the newest that a stream of the session, or a status line, states.
std::vector<const LimitState*> limits_of(const Session& session);

/// What a relay publishes with the status of a session; names are redacted by `filter`, if there is one.
ReportedNumbers numbers_of(const Session& session, const ModelTable& models, const TextFilter* filter);

/// The state of the transcripts, for the status tracker.
status::TranscriptSummary transcript_summary(const Session& session);
/// As the value of a member.
void append_done(JsonWriter& json, const status::Done& done);

/// {"type":…,"id":…}
std::string control_frame(std::string_view type, std::string_view id);

/// {"type":"error",…}; an empty id is omitted.
std::string error_frame(std::string_view id, std::string_view code, std::string_view text,
                        bool retry = false);

/// {"type":"heartbeat","time":…}; the time in milliseconds since 1970.
std::string heartbeat_frame(std::int64_t time_ms);

/// `<stream>:<cursor>`
std::string stream_cursor(const tail::Stream& stream, const Cursor& cursor);

/// `bookmark` frames for these stream cursors, at most 1,000 per frame. With `complete` there is at least one
/// frame, and the last one has `"complete":true`.
std::vector<std::string> bookmark_frames(std::string_view id, const std::vector<std::string>& cursors,
                                         bool complete);

/// {"type":"reset",…}; empty fields are omitted.
std::string reset_frame(std::string_view id, std::string_view host, std::string_view session,
                        std::string_view stream, std::string_view reason);

/// {"type":"stream.renamed",…}
std::string renamed_frame(std::string_view host, std::string_view session, std::string_view from,
                          std::string_view to);

/// {"type":"stream.removed",…}
std::string removed_frame(std::string_view host, std::string_view stream);

}  // namespace earshot::serve
