#include <array>

#include "apps/tool/command.hpp"

namespace rio::tool {

std::span<const AddCommand> command_table() {
  static constexpr std::array<AddCommand, 7> kTable = {
      add_list, add_regs, add_selftest, add_links, add_counters, add_errors, add_fabric,
  };
  return kTable;
}

}  // namespace rio::tool
