// rio-tool list: which cards are there.
#include <memory>

#include "apps/tool/command.hpp"
#include "apps/tool/doctor/machine.hpp"
#include "apps/tool/system/card_state.hpp"
#include "apps/tool/system/files.hpp"
#include "base/formatted.hpp"
#include "pmd/cores/cpu_list.hpp"

namespace rio::tool {
namespace {

std::string or_dash(const std::string& text) {
  return text.empty() ? "-" : text;
}

std::string number_or_dash(int number) {
  return number < 0 ? "-" : std::to_string(number);
}

/// The link as it is, and behind it the card's best, where that is more.
std::string link_of(const CardState& card) {
  if (!card.config || !card.config->express) {
    return "";
  }
  const std::string is = link_text(card.config->speed(), card.config->width());
  const std::string can = link_text(card.config->speed_max(), card.config->width_max());
  return is == can || can.empty() ? is : (is.empty() ? "down" : is) + " of " + can;
}

std::string gateware_of(const CardState& card) {
  if (!card.id) {
    return card.awake() ? "" : "asleep";
  }
  if (!card.id->is_card()) {
    return card.id->all_ones() ? "no answer" : "unknown";
  }
  const std::string version =
      base::formatted("%u.%u.%u", card.id->major(), card.id->minor(), card.id->patch());
  return card.id->edition() < regs::kEdition
             ? version + base::formatted(", edition %u", card.id->edition())
             : version;
}

std::string build_of(const CardState& card) {
  return card.id && card.id->is_card() && card.id->build != 0 ? utc_text(card.id->build) : "";
}

/// The BARs of a card, as data and as text.
std::pair<Json, std::string> bars_of(const CardState& card) {
  Json data = Json::array();
  std::string text;
  for (size_t i = 0; i < card.bars.size(); ++i) {
    const Resource& bar = card.bars[i];
    if (bar.there()) {
      data.push_back(
          {{"bar", i}, {"address", bar.unset() ? 0 : bar.first}, {"bytes", bar.len_bytes()}});
      text.append(text.empty() ? "" : ", ").append(std::to_string(i)).append(": ");
      text.append(size_text(bar.len_bytes())).append(bar.unset() ? " without address" : "");
    }
  }
  return {data, text};
}

Json link_data(const CardState& card) {
  if (!card.config || !card.config->express) {
    return nullptr;
  }
  const auto& config = *card.config;
  return {{"speed", pci::link_speed_name(config.speed())},
          {"width", config.width()},
          {"speed_max", pci::link_speed_name(config.speed_max())},
          {"width_max", config.width_max()}};
}

/// The capabilities that matter: texts by their names.
Json capabilities_of(const CardState& card) {
  if (!card.config || !card.config->express) {
    return {{"capabilities", card.config && card.config->gone ? "the card is gone: all ones"
                             : card.config && !card.config->whole
                                 ? "the kernel shows them to root only"
                                 : "no PCI Express capability"}};
  }
  const auto& config = *card.config;
  const std::string bridge = card.bridge_config && card.bridge_config->express
                                 ? ", bridge " + std::to_string(card.bridge_config->mps_bytes())
                                 : "";
  return {{"largest payload", std::to_string(config.mps_bytes()) + " bytes (card can " +
                                  std::to_string(config.mps_max_bytes()) + bridge + ")"},
          {"largest read request", std::to_string(config.mrrs_bytes()) + " bytes"},
          {"relaxed ordering", config.relaxed_ordering() ? "allowed" : "off"},
          {"error reporting", !config.aer ? "none (no AER)"
                              : config.aer_uncorrectable == 0
                                  ? "AER, no uncorrectable errors"
                                  : "AER: " + pci::uncorrectable_names(config.aer_uncorrectable)},
          {"function-level reset", config.can_flr() ? "yes" : "no"},
          {"memory, bus master", std::string(config.memory_on() ? "on" : "off") + ", " +
                                     (config.master_on() ? "on" : "off")}};
}

/// Add the capabilities of a card and what is wrong with them to its `data`. @return them as text.
std::string add_details(const Machine& machine, const Findings& findings, const CardState& card,
                        Json& data) {
  const std::string cpus = pmd::cores::format_cpu_list(machine.near(card));
  const Json capabilities = capabilities_of(card);
  data.update({{"bridge", card.bridge},
               {"cpus", cpus},
               {"built", build_of(card)},
               {"capabilities", capabilities},
               {"wrong", Json::array()}});
  TextTable table({"  bridge above", or_dash(card.bridge)});
  table.add({"  CPUs nearby", or_dash(cpus)});
  table.add({"  gateware built", or_dash(build_of(card))});
  for (const auto& [name, value] : capabilities.items()) {
    table.add({"  " + name, value.get<std::string>()});
  }
  std::string text = "\n" + card.address + "\n" + table.text();
  for (const Finding& one : findings.all) {
    if (one.card == card.address) {
      data["wrong"].push_back({{"id", one.kind->id}, {"seen", one.seen}});
      text.append("  wrong: ").append(one.kind->line).append(": ").append(one.seen);
      text.append(" (").append(one.kind->id).append("; see rio-tool doctor)\n");
    }
  }
  return text;
}

int list(const GlobalOptions& context, bool& verbose) {
  std::unique_ptr<Machine> machine;
  std::vector<CardState> cards;
  if (verbose ? Machine::read(context, "", &machine) != 0 : read_cards(context, &cards) != 0) {
    return kExitFailed;  // the log has said why
  }
  Findings findings;
  if (verbose) {
    check_link(*machine, findings);  // as doctor does
  }
  std::string details;
  Json data = Json::array();
  TextTable table({"address", "ids", "driver", "group", "node", "link", "BARs", "gateware"});
  for (const CardState& card : verbose ? machine->cards : cards) {
    const auto [bars, bars_text] = bars_of(card);
    const std::string gateware = gateware_of(card);
    Json one = {{"address", card.address},
                {"vendor", card.vendor},
                {"device", card.device},
                {"driver", card.driver},
                {"iommu_group", card.iommu_group},
                {"numa_node", card.numa_node},
                {"link", link_data(card)},
                {"bars", bars},
                {"gateware", gateware}};
    if (verbose) {
      details += add_details(*machine, findings, card, one);
    }
    data.push_back(std::move(one));
    table.add({card.address, base::formatted("%04x:%04x", card.vendor, card.device),
               or_dash(card.driver), number_or_dash(card.iommu_group),
               number_or_dash(card.numa_node), or_dash(link_of(card)), or_dash(bars_text),
               or_dash(gateware)});
  }
  return print_result(context, data, table.empty() ? "no cards\n" : table.text() + details);
}

}  // namespace

void add_list(CLI::App& app, GlobalOptions& context) {
  const auto [command, verbose] =
      add_command(app, context, "list", "Show the cards of this machine",
                  "Examples\n"
                  "  rio-tool list\n"
                  "  sudo rio-tool list -v        the kernel shows capabilities to root\n"
                  "  rio-tool --json list",
                  list);
  command.add_flag("-v,--verbose", verbose,
                   "Also the capabilities that matter, and what is wrong with them");
}

}  // namespace rio::tool
