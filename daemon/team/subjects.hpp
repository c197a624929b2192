// The subjects and message ids in JetStream (protocol/TEAM.md). Pure.
//
//   earshot.v1.<host>.<project>.<session>            events, resets and removal of a session's main stream
//   earshot.v1.<host>.<project>.<session>.<stream>   the same of any other stream
//   earshot.status.v1.<host>.<session>               the status of a session; the last message is current
//   earshot.status.v1.<host>                         the host's heartbeat
//   earshot.read.v1.<host>                           requests for complete records
//
// Each token is escape_token() of the name: injective; letters, digits, `-`, `_` and `=`; at most 160 bytes.
// A stream has one subject: the subject's last message is the stream's published position.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace earshot::team {

constexpr std::size_t payload_bytes_max = 500
                                          << 10;  // longer events are shortened; with headers below 512 KiB
constexpr std::size_t message_bytes_max = 512 << 10;
constexpr std::size_t host_bytes_max = 64;

/// True for a valid host name: 1 to host_bytes_max letters, digits, `.`, `-` and `_`.
bool is_host(std::string_view name);

/// The project is the root and directory of the transcript: unlike the working directory they are constant.
std::string event_subject(std::string_view host, std::string_view session, std::string_view stream);
/// The subject of a stream named `<project>/<session>`; empty for other streams.
std::string main_subject(std::string_view host, std::string_view stream);
/// True if `host` may publish `stream` under `subject`.
bool is_subject_of(std::string_view subject, std::string_view host, std::string_view stream);
std::string all_events();
std::string events_of(std::string_view host);
std::string status_subject(std::string_view host, std::string_view session);
std::string heartbeat_subject(std::string_view host);
std::string all_statuses();
std::string read_subject(std::string_view host);

/// The escaped host and stream of an event subject with four tokens; nullopt for others.
struct SubjectTokens {
  std::string_view host, stream;
};
std::optional<SubjectTokens> tokens_of(std::string_view event_subject);

/// `<host>/<stream>/<cursor>`, after a reset with `#<history>`: a history may start with the same cursors as
/// the previous one, and the broker would drop its events as duplicates.
std::string message_id(std::string_view host, std::string_view stream, std::string_view cursor,
                       std::string_view history);
struct IdParts {
  std::string_view stream, cursor, history;
};
/// Returns nullopt for the id of another host.
std::optional<IdParts> parts_of_id(std::string_view host, std::string_view id);

}  // namespace earshot::team
