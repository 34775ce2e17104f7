/// @file
/// The subcommands, one file each: cmd_NAME.cc.
#pragma once

#include <span>

#include <CLI/CLI.hpp>

#include "apps/tool/global_options.hpp"

namespace rio::tool {

/// Adds a subcommand with its options, help and examples to `app`. Its callback runs after the
/// whole command line was parsed, and sets GlobalOptions::exit_code. `app` and `context` outlive
/// it.
using AddCommand = void (*)(CLI::App& app, GlobalOptions& context);

/// All subcommands, in the order of the help.
[[nodiscard]] std::span<const AddCommand> command_table();

void add_fabric(CLI::App& app, GlobalOptions& context);
void add_list(CLI::App& app, GlobalOptions& context);
void add_regs(CLI::App& app, GlobalOptions& context);
void add_selftest(CLI::App& app, GlobalOptions& context);
void add_links(CLI::App& app, GlobalOptions& context);
void add_counters(CLI::App& app, GlobalOptions& context);
void add_errors(CLI::App& app, GlobalOptions& context);
void add_top(CLI::App& app, GlobalOptions& context);
void add_doctor(CLI::App& app, GlobalOptions& context);
void add_bind(CLI::App& app, GlobalOptions& context);
void add_unbind(CLI::App& app, GlobalOptions& context);
void add_reset(CLI::App& app, GlobalOptions& context);
void add_hugepages(CLI::App& app, GlobalOptions& context);
void add_completion(CLI::App& app, GlobalOptions& context);

}  // namespace rio::tool
