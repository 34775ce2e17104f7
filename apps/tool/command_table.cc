#include <array>

#include "apps/tool/command.hpp"

namespace rio::tool {

std::span<const AddCommand> command_table() {
  static constexpr std::array<AddCommand, 8> kTable = {
      add_list, add_regs, add_selftest, add_links, add_counters, add_errors, add_fabric, add_top,
  };
  return kTable;
}

}  // namespace rio::tool
