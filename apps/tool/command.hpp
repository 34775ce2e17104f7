/// @file
/// The subcommands, one file each: cmd_NAME.cc (bind and unbind have one).
#pragma once

#include <array>
#include <memory>

#include <CLI/CLI.hpp>

#include "apps/tool/global_options.hpp"

namespace rio::tool {

/// Adds a subcommand with its options, help and examples to `app`. Its callback runs after the
/// whole command line was parsed, and sets GlobalOptions::exit_code. `app` and `context` outlive
/// it.
using AddCommand = void (*)(CLI::App& app, GlobalOptions& context);

/// A subcommand that was added. Both live as long as the command line.
template <class Options>
struct Command {
  CLI::App& app;
  Options& options;
};

/// Add a subcommand with options of its own, which their user then defines.
/// @param footer of its help. @param run returns the exit code.
template <class Options>
Command<Options> add_command(CLI::App& app, GlobalOptions& context, const char* name,
                             const char* help, const char* footer,
                             int (*run)(const GlobalOptions&, Options&)) {
  const auto options = std::make_shared<Options>();
  CLI::App* const command = app.add_subcommand(name, help);
  command->footer(footer);
  command->callback([&context, options, run] { context.exit_code = run(context, *options); });
  return {*command, *options};
}

void add_list(CLI::App& app, GlobalOptions& context);
void add_doctor(CLI::App& app, GlobalOptions& context);
void add_bind(CLI::App& app, GlobalOptions& context);
void add_unbind(CLI::App& app, GlobalOptions& context);
void add_reset(CLI::App& app, GlobalOptions& context);
void add_hugepages(CLI::App& app, GlobalOptions& context);
void add_regs(CLI::App& app, GlobalOptions& context);
void add_selftest(CLI::App& app, GlobalOptions& context);
void add_links(CLI::App& app, GlobalOptions& context);
void add_counters(CLI::App& app, GlobalOptions& context);
void add_errors(CLI::App& app, GlobalOptions& context);
void add_rail(CLI::App& app, GlobalOptions& context);
void add_fabric(CLI::App& app, GlobalOptions& context);
void add_top(CLI::App& app, GlobalOptions& context);
void add_completion(CLI::App& app, GlobalOptions& context);

/// All subcommands, in the order of the help: of the machine, of a card, of more than one.
inline constexpr auto kCommands = std::to_array<AddCommand>(
    {add_list, add_doctor, add_bind, add_unbind, add_reset, add_hugepages, add_regs, add_selftest,
     add_links, add_counters, add_errors, add_rail, add_fabric, add_top, add_completion});

}  // namespace rio::tool
