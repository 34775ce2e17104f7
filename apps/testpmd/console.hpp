/// @file
/// The prompt, and commands from a file.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/testpmd/test_run.hpp"

namespace rio::testpmd {

/// The state that commands work on.
struct Console {
  TestRun& session;
  bool quit = false;
};

using Args = std::span<const std::string>;

/// A command. The words of `name` are matched first; what follows are its arguments.
struct Command {
  const char* name;  ///< "show port stats"
  const char* args;  ///< their names, those in brackets may be left out: "PORT|all [PREFIX]"
  const char* help;
  /// @param args foreign, as many as there may be. @return 0, or -EINVAL with what is wrong and the
  /// remedy in `error`.
  int (*run)(Console& console, Args args, std::string* error);
};

/// The commands of each concern, in the order of the help.
[[nodiscard]] std::span<const Command> run_commands();
[[nodiscard]] std::span<const Command> show_commands();
[[nodiscard]] std::span<const Command> card_commands();
[[nodiscard]] std::vector<Command> all_commands();

/// "reg read PORT|all NAME|OFFSET".
[[nodiscard]] std::string usage(const Command& command);

/// Run one line. Empty lines and those that begin with # do nothing. @return as Command::run.
[[nodiscard]] int run_line(Console& console, std::string_view line, std::string* error);
/// Words that may stand in place of the last one of `line`.
[[nodiscard]] std::vector<std::string> complete_line(Console& console, std::string_view line);

/// The ports that the first argument names by "all" or a number; all of them without one.
/// @return 0 or -EINVAL.
[[nodiscard]] int ports_of(Console& console, Args args, std::vector<TestPort*>* out,
                           std::string* error);
/// --cmdline-file, then the prompt if -i. @param error set if the file cannot be read or a line of
/// it fails. @return the exit code.
[[nodiscard]] int run_console(TestRun& session, std::string* error);

}  // namespace rio::testpmd
