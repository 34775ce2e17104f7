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
  const char* args;  ///< for the help: "PORT|all"
  const char* help;
  size_t min_args;
  size_t max_args;
  /// @param args foreign. @return 0, or -errno with what is wrong and the remedy in `error`.
  int (*run)(Console& console, Args args, std::string* error);
  /// Possible values of argument `index`, for completion; may be null.
  std::vector<std::string> (*candidates)(Console& console, size_t index);
};

/// The commands of each concern, in the order of the help.
[[nodiscard]] std::span<const Command> run_commands();
[[nodiscard]] std::span<const Command> show_commands();
[[nodiscard]] std::span<const Command> reg_commands();
[[nodiscard]] std::span<const Command> desc_commands();
[[nodiscard]] std::vector<const Command*> all_commands();

/// "reg read PORT|all NAME|OFFSET".
[[nodiscard]] std::string usage(const Command& command);

/// Run one line. Empty lines and those that begin with # do nothing. @return as Command::run.
[[nodiscard]] int run_line(Console& console, std::string_view line, std::string* error);
/// All ways to go on after `line`: whole lines.
[[nodiscard]] std::vector<std::string> complete_line(Console& console, std::string_view line);

/// Ports by "all" or a number. @return 0 or -EINVAL.
[[nodiscard]] int ports_of(Console& console, const std::string& text, std::vector<TestPort*>* out,
                           std::string* error);
/// Call `work(TestPort&)` for such ports until it fails. @return what it returned, or as
/// ports_of().
template <typename Work>
[[nodiscard]] int for_ports(Console& console, const std::string& text, std::string* error,
                            Work&& work) {
  std::vector<TestPort*> ports;
  int rc = ports_of(console, text, &ports, error);
  for (size_t i = 0; rc == 0 && i < ports.size(); ++i) {
    rc = work(*ports[i]);
  }
  return rc;
}
/// "all" and the numbers, for completion.
[[nodiscard]] std::vector<std::string> port_names(Console& console);

/// --cmdline-file, then the prompt if -i. @param error set if the file cannot be read or a line of
/// it fails. @return the exit code.
[[nodiscard]] int run_console(TestRun& session, std::string* error);

}  // namespace rio::testpmd
