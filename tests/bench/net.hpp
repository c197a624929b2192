// What every bench program needs of sockets, files and clocks. Errors end the program: a figure that was
// half measured is worth nothing.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <string>
#include <string_view>

namespace bench {

using Clock = std::chrono::steady_clock;

[[noreturn]] void die(const char* what);            // with errno's text
[[noreturn]] void give_up(const std::string& why);  // without
int check(int result, const char* what);

void send_all(int fd, std::string_view bytes);
int connect_to(int port);           // 127.0.0.1, blocking
int listen_anywhere(int& port);     // 127.0.0.1, a free port
void raise_descriptor_limit();      // to what the system lets us have
double cpu_seconds(pid_t process);  // of all its threads, to the nanosecond
double seconds_since(Clock::time_point start);

/// A WebSocket upgrade as a program sends it that has a token; empty: without.
std::string upgrade_request(int port, const std::string& token);
/// A text frame of a client, masked with zeros; below 64 KiB.
std::string text_frame(std::string_view payload);
/// `filter` is a JSON object.
std::string subscription(const std::string& filter, bool snapshot);

/// One assistant record with `marker` in its text, as the agent program writes it; with the line feed.
std::string line_of(const std::string& marker, int number, std::size_t text_bytes);

/// As the agent program does: open, one write, close. Gives the time just before the write.
Clock::time_point append(const std::string& path, std::string_view bytes);

}  // namespace bench
