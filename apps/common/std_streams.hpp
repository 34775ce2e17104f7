/// @file
/// Standard input and output that somebody may have closed.
#pragma once

#include <string>

namespace rio::apps {

/// First of all in main(). Opens on /dev/null what the program was started without: EAL's files
/// would get these numbers, and be read from and printed into. A reader of the output that goes
/// away no longer ends the program with the cards running.
void prepare_std_streams();
/// Something that was printed did not arrive, so that going on is of no use.
[[nodiscard]] bool output_is_lost();
/// At the end. @return 0, or -EIO with the remedy in `error`.
[[nodiscard]] int flush_output(std::string* error);

}  // namespace rio::apps
