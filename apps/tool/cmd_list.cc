// rio-tool list: which cards are there.
#include "apps/tool/command.hpp"
#include "apps/tool/text_table.hpp"
#include "pmd/bus/vfio/pci_scan.hpp"

namespace rio::tool {
namespace {

int list(const Context& context) {
  std::vector<pmd::vfio::PciCard> cards;
  if (pmd::vfio::find_cards(context.paths, &cards) != 0) {
    return kExitFailed;  // the log has said why
  }
  Json data = Json::array();
  TextTable table({"address", "driver", "group", "node"});
  for (const pmd::vfio::PciCard& card : cards) {
    data.push_back({{"address", card.address},
                    {"driver", card.driver},
                    {"iommu_group", card.iommu_group},
                    {"numa_node", card.numa_node}});
    table.add({card.address, card.driver.empty() ? "-" : card.driver,
               card.iommu_group < 0 ? "-" : std::to_string(card.iommu_group),
               card.numa_node < 0 ? "-" : std::to_string(card.numa_node)});
  }
  print_result(context, data, table.empty() ? "no cards\n" : table.text());
  return kExitOk;
}

}  // namespace

void add_list(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("list", "Show the cards of this machine");
  command->footer("Examples\n  rio-tool list\n  rio-tool --json list");
  command->callback([&context] { context.exit_code = list(context); });
}

}  // namespace rio::tool
