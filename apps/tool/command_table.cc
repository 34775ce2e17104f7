#include <array>

#include "apps/tool/command.hpp"

namespace rio::tool {

std::span<const AddCommand> command_table() {
  static constexpr std::array<AddCommand, 3> kTable = {
      add_list,
      add_regs,
      add_selftest,
  };
  return kTable;
}

}  // namespace rio::tool
