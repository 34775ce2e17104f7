/// @file
/// Standard input and output that the caller may have closed.
#pragma once

namespace rio::apps {

/// Run the main() of a program. Opens on /dev/null the streams that the program was started
/// without: files would get these numbers, and be read from and printed into. A reader of the
/// output that goes away does not end the program. @param name of the program, for messages.
/// @return what `program` returns; at least 1, with the remedy on stderr, if something that was
/// printed did not arrive.
[[nodiscard]] int run_program(const char* name, int (*program)(int, char**), int argc, char** argv);

/// Printed text did not arrive, or its reader has gone: going on is of no
/// use.
[[nodiscard]] bool output_is_lost();

}  // namespace rio::apps
