// Frames as lines: what a WebSocket would carry, for those who read a stream of text.
#pragma once
#include <span>
#include <string>

namespace earshot::serve {

/// Appends the payload of each frame and a line's end. `frames` are whole server frames, side by side
/// (frame.hpp); their payloads are JSON without line ends.
void append_lines(std::string& out, std::span<const char> frames);

}  // namespace earshot::serve
