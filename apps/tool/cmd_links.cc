// rio-tool links: what the ports trained to, against what they can.
#include "apps/tool/card_option.hpp"
#include "apps/tool/command.hpp"
#include "base/formatted.hpp"

namespace rio::tool {
namespace {

constexpr uint32_t k8b10bMbaudMax = 6250;  // faster lanes have 64b/67b. RIO Part 6 §1

/// Bits of data a second over all lanes, line code off; in Gb/s.
double data_gbps(const pmd::LinkState& link) {
  const double code = link.lane_mbaud <= k8b10bMbaudMax ? 8.0 / 10 : 64.0 / 67;
  return link.lanes * (link.lane_mbaud / 1000.0) * code;
}

/// The fault of a port, empty if there is none.
std::string fault(const LookedAtCard& looked, const pmd::LinkState& link) {
  if (looked.card->gone()) {
    return "the card is gone";
  }
  if (!link.up) {
    return "down: check cable, module and the other end, and that 'regs read port.control' "
           "says enable=1";
  }
  if (link.lanes < link.lanes_max) {
    return "narrow: " + std::to_string(link.lanes_max - link.lanes) +
           " lanes did not train; check cable and module";
  }
  return "";
}

int links(const GlobalOptions& context, CardOption& option) {
  std::vector<std::string> names;
  if (option.resolve_all(context, &names) != 0) {
    return kExitFailed;
  }
  Json data = Json::array();
  TextTable table({"card", "port", "state", "lanes", "can", "lane", "data", "what is wrong"});
  bool wrong = false;
  for (const std::string& name : names) {
    LookedAtCard looked;
    if (open_to_look(context, name, &looked) != 0) {
      return kExitFailed;  // the log has said why
    }
    if (!looked.card->blocks().has_port()) {
      return complain(looked.bus->name() + " has no port block", "update the gateware");
    }
    const pmd::LinkState link = looked.card->link();
    const std::string what = fault(looked, link);
    wrong = wrong || !what.empty();
    data.push_back({{"card", looked.bus->name()},
                    {"port", 0},
                    {"up", link.up},
                    {"lanes", link.lanes},
                    {"lanes_max", link.lanes_max},
                    {"lane_mbaud", link.lane_mbaud},
                    {"data_gbps", data_gbps(link)},
                    {"wrong", what}});
    table.add({looked.bus->name(), "0", link.up ? "up" : "down", std::to_string(link.lanes),
               std::to_string(link.lanes_max),
               base::formatted("%.3g Gbaud", link.lane_mbaud / 1000.0),
               base::formatted("%.3g Gb/s", data_gbps(link)), what});
  }
  print_result(context, data, table.text());
  return wrong ? kExitFound : kExitOk;
}

}  // namespace

void add_links(CLI::App& app, GlobalOptions& context) {
  const auto [command, option] = add_command(
      app, context, "links",
      "State, width and rate of each port; exit code 3: one is down "
      "or narrow",
      "Looks at all cards unless one is named, beside programs that use them. \"can\" is how many\n"
      "lanes the port has; \"data\" is what the lanes carry, line code off.\n\n"
      "Examples\n  rio-tool links\n  rio-tool --json links --card 0000:03:00.0",
      links);
  option.add_to(command);
}

}  // namespace rio::tool
