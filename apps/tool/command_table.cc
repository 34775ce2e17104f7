#include <array>

#include "apps/tool/command.hpp"

namespace rio::tool {

std::span<const AddCommand> command_table() {
  static constexpr auto kTable = std::to_array<AddCommand>({
      add_list,
      add_doctor,
      add_bind,
      add_unbind,
      add_reset,
      add_hugepages,
      add_completion,
  });
  return kTable;
}

}  // namespace rio::tool
