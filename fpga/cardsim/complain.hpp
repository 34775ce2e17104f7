/// @file
/// Where rio-cardsim says what went wrong: stderr, one line, naming the thing and the remedy.
#pragma once

namespace rio::cardsim {

/// One line "rio-cardsim: error: ..."; cut at 1023 characters. Any thread.
[[gnu::format(printf, 1, 2)]] void complain(const char* format, ...);
/// One line "rio-cardsim: ..." for what the user may want to know.
[[gnu::format(printf, 1, 2)]] void remark(const char* format, ...);

}  // namespace rio::cardsim
