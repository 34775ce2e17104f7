/// @file
/// Text files that users write: configuration, lists, commands.
#pragma once

#include <cstddef>
#include <string>

namespace rio::base {

/// Read a whole file. A byte order mark of UTF-8 at its beginning is left out, since editors write
/// it unasked. Any thread.
/// @param bytes_max most that the file may have.
/// @param out set only on success.
/// @param error names the file and what is wrong with it.
/// @return 0; -EISDIR; -EFBIG: more than `bytes_max`; -EILSEQ: UTF-16 or no text at all; -errno.
[[nodiscard]] int read_text_file(const std::string& path, size_t bytes_max, std::string* out,
                                 std::string* error);

/// Leave out a byte order mark of UTF-8 at the beginning of a text that is read line by line.
void drop_byte_order_mark(std::string* text);

}  // namespace rio::base
