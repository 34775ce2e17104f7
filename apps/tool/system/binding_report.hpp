/// @file
/// Reports of bind and unbind.
#pragma once

#include <string>

#include "apps/tool/global_options.hpp"
#include "apps/tool/system/sysfs_writer.hpp"
#include "pmd/api/pci.hpp"

namespace rio::tool {

/// Drivers before and after, a line for each card. One thread.
class BindingReport {
 public:
  /// @param card as it was before. @param after its driver now, empty if it has none.
  void add(const pci::PciCard& card, const std::string& after);
  /// @param writer what was written, or with -n would be. @param exit_code of the command.
  void print(const GlobalOptions& context, const SysfsWriter& writer, int exit_code) const;

 private:
  Json cards_ = Json::array();
  std::string text_;
};

}  // namespace rio::tool
