#include <array>

#include "apps/tool/command.hpp"

namespace rio::tool {

std::span<const AddCommand> command_table() {
  static constexpr auto kTable = std::to_array<AddCommand>({
      // The machine.
      add_list,
      add_doctor,
      add_bind,
      add_unbind,
      add_reset,
      add_hugepages,
      // A card.
      add_regs,
      add_selftest,
      add_links,
      add_counters,
      add_errors,
      // More than one.
      add_fabric,
      add_top,
      add_completion,
  });
  return kTable;
}

}  // namespace rio::tool
