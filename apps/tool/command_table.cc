#include <array>

#include "apps/tool/command.hpp"

namespace rio::tool {

std::span<const AddCommand> command_table() {
  static constexpr std::array<AddCommand, 2> kTable = {
      add_list,
      add_fabric,
  };
  return kTable;
}

}  // namespace rio::tool
