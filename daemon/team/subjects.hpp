// What things are called in JetStream (protocol/README.md, "Between machines"). Pure.
//
//   earshot.v1.<host>.<project>.<session>            events of a session's main stream, resets, and that it
//   is gone earshot.v1.<host>.<project>.<session>.<stream>   the same of any other stream
//   earshot.status.v1.<host>.<session>               what a session does now; the last one counts
//   earshot.status.v1.<host>                         the host's beat: who publishes under this name
//   earshot.read.v1.<host>                           requests for a whole record
//
// Each token is tail::escape() of the name: injective, of letters, digits, `-`, `_` and `=`, at most 160
// bytes. One subject a stream: the last message of a subject says how far its stream was published.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace earshot::team {

constexpr std::size_t payload_bytes_max = 500 << 10;  // longer events are cut; with its head below 512 KiB
constexpr std::size_t message_bytes_max = 512 << 10;
constexpr std::size_t host_bytes_max = 64;

/// Letters, digits, `.`, `-` and `_`, and not too long: what may publish under its name.
bool is_host(std::string_view name);

/// The project is the transcript's root and directory, which never change: a working directory may.
std::string event_subject(std::string_view host, std::string_view session, std::string_view stream);
/// Of a stream that is a session's main one by its name alone, `<project>/<session>`; empty: it is none.
std::string main_subject(std::string_view host, std::string_view stream);
/// Whether this host may tell of this stream there.
bool is_subject_of(std::string_view subject, std::string_view host, std::string_view stream);
std::string all_events();
std::string events_of(std::string_view host);
std::string status_subject(std::string_view host, std::string_view session);
std::string beat_subject(std::string_view host);
std::string all_statuses();
std::string read_subject(std::string_view host);

/// Which host and stream an event's subject with four tokens is of. Nothing: it is none.
struct SubjectTokens {
  std::string_view host, stream;
};
std::optional<SubjectTokens> tokens_of(std::string_view event_subject);

/// `<host>/<stream>/<cursor>`, and behind a first reset `#<history>`: a history that begins as the one before
/// it has the same cursors, and would be taken for a repetition.
std::string message_id(std::string_view host, std::string_view stream, std::string_view cursor,
                       std::string_view history);
struct IdParts {
  std::string_view stream, cursor, history;
};
/// Nothing: it is not of this host.
std::optional<IdParts> parts_of_id(std::string_view host, std::string_view id);

}  // namespace earshot::team
