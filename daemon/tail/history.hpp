// The archive's readers: on the second thread, in slices.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "tail/archive.hpp"
#include "tail/io_thread.hpp"

namespace earshot::tail {

/// Opens the file with the first piece; what it holds stays readable though its name may be another's then.
std::unique_ptr<History> read_again(IoThread& disk, std::string path, TranscriptOptions options);

void read_record(IoThread& disk, std::string path, std::uint64_t hash_key, const Cursor& end,
                 std::size_t line_bytes_max, std::function<void(RecordText)> then);

}  // namespace earshot::tail
