/// @file
/// The global options of all subcommands, and the output of their results.
#pragma once

#include <ctime>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "pmd/api/pci.hpp"

namespace rio::tool {

/// Keys keep the order in which they were added.
using Json = nlohmann::ordered_json;

/// Exit codes, the same for every subcommand.
enum ExitCode : int {
  kExitOk = 0,
  kExitFailed = 1,  ///< it could not be done; the reason is on stderr
  kExitUsage = 2,   ///< wrong command line
  kExitFound = 3,   ///< it was done, and something is wrong with what was looked at
};

/// The global options. Filled by the command line before a subcommand runs; one thread.
struct GlobalOptions {
  pci::PciPaths paths;      ///< below --root
  std::string root;         ///< of --root, empty: this system
  bool json = false;        ///< print JSON in place of text
  bool dry_run = false;     ///< say what would be changed, change nothing
  int exit_code = kExitOk;  ///< set by the subcommand
};

/// `data` as text. Names of files, cards and devices may be no UTF-8; such bytes are replaced.
/// @param indent below 0: one line.
[[nodiscard]] std::string json_text(const Json& data, int indent = -1);

/// Print a result: `data` as JSON with --json, else `text` (which ends with a newline or is empty).
/// @param indent of the JSON; below 0: one line. @return kExitOk.
int print_result(const GlobalOptions& context, const Json& data, const std::string& text,
                 int indent = 2);

/// Write a file anew. @return 0, or -errno, said on stderr.
[[nodiscard]] int write_file(const std::string& path, const std::string& text);

/// Rows of text in aligned columns: as wide as their widest cell, two blanks apart; no blanks at
/// the end of a line.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> heads) : rows_{std::move(heads)} {}
  /// @param cells as many as there are heads, or fewer.
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  [[nodiscard]] bool empty() const { return rows_.size() == 1; }
  [[nodiscard]] std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// A number in a table: "1.25M". @param value at least 0.
[[nodiscard]] std::string short_number(double value);

/// A moment as "2026-11-22T02:38:24Z"; without an argument, now.
[[nodiscard]] std::string utc_text(std::time_t seconds = std::time(nullptr));
/// Now as "02:38:24.123", UTC.
[[nodiscard]] std::string time_of_day();

/// Say on stderr what went wrong and what to do about it. @return `code`, of whatever kind.
int complain(const std::string& error, const std::string& remedy, int code = kExitFailed);

}  // namespace rio::tool
