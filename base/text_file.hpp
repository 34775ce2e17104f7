/// @file
/// Text files that users write: configuration, lists, commands.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rio::base {

/// Read a whole file. A UTF-8 byte order mark at its beginning is skipped, since editors add one
/// unasked. Any thread.
/// @param bytes_max largest permitted size of the file.
/// @param out set only on success.
/// @param error names the file and the cause.
/// @return 0; -EISDIR; -EFBIG: more than `bytes_max`; -EILSEQ: UTF-16, or not text; -errno.
[[nodiscard]] int read_text_file(const std::string& path, size_t bytes_max, std::string* out,
                                 std::string* error);

/// Skip a UTF-8 byte order mark at the beginning of a text that is read line by line.
void drop_byte_order_mark(std::string* text);

/// The part of `text` between the blanks, tabs and line ends around it. Any thread.
[[nodiscard]] std::string_view trimmed(std::string_view text);

}  // namespace rio::base
