#include <array>

#include "apps/tool/command.hpp"

namespace rio::tool {

std::span<const AddCommand> command_table() {
  static constexpr std::array<AddCommand, 1> kTable = {
      add_list,
  };
  return kTable;
}

}  // namespace rio::tool
