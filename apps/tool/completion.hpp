/// @file
/// Completion of command lines, made from the commands themselves.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace rio::tool {

/// Values of an option whose type or check names them: "COUNT|show" gives show, "{a,b}" gives a and
/// b; words in capitals stand for anything and give nothing.
[[nodiscard]] std::vector<std::string> fixed_values(const std::string& type_name);

/// A script that bash sources: it completes subcommands, their options, and values of options that
/// are fixed. Pure; `app` with all its commands.
[[nodiscard]] std::string bash_completion(const CLI::App& app);

}  // namespace rio::tool
