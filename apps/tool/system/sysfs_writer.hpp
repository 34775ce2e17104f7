/// @file
/// Writes to sysfs, told or done, with the cause where one fails.
#pragma once

#include <functional>
#include <string>

#include "apps/tool/global_options.hpp"

namespace rio::tool {

/// With -n writes are only written down. One thread.
class SysfsWriter {
 public:
  explicit SysfsWriter(const GlobalOptions& context) : dry_run_(context.dry_run) {}

  /// Write `text` into `path`. @param refusal what it means when the kernel refuses this write,
  /// with the remedy; empty: what the error alone says. @return 0, or -errno, said on stderr.
  [[nodiscard]] int write(const std::string& path, const std::string& text,
                          const std::string& refusal = "");

  /// Wait for what a write brings about; with -n there is nothing to wait for.
  /// @param done looked at every few milliseconds. @return whether it came within 5 s.
  [[nodiscard]] bool wait_for(const std::function<bool()>& done) const;

  [[nodiscard]] bool dry_run() const { return dry_run_; }
  /// Each write, done or not, as {"path", "text"}.
  [[nodiscard]] const Json& data() const { return writes_; }
  /// The writes as commands of the shell, one a line.
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  bool dry_run_;
  Json writes_ = Json::array();
  std::string text_;
};

}  // namespace rio::tool
