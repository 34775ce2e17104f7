/// @file
/// Error reports of rio-cardsim: one line on stderr that names the thing and the remedy.
#pragma once

namespace rio::cardsim {

/// Print "rio-cardsim: error: ...", cut at 1023 characters. Any thread.
[[gnu::format(printf, 1, 2)]] void complain(const char* format, ...);

}  // namespace rio::cardsim
