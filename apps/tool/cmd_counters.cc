// rio-tool counters: what port and barrier engines count, once or live.
#include <optional>

#include "apps/tool/card_option.hpp"
#include "apps/tool/command.hpp"
#include "apps/tool/pace.hpp"
#include "apps/tool/port_errors.hpp"
#include "base/formatted.hpp"

namespace rio::tool {
namespace {

struct Options {
  CardOption card;
  bool watch = false;
  Pace pace;
};

/// @param before null: there are no rates yet.
void print_sample(const GlobalOptions& context, bool watch, const std::string& card,
                  const PortSample& now, const PortSample* before) {
  Json data = {{"time", utc_text()}, {"card", card}, {"port", 0}, {"counters", Json::object()}};
  std::vector<std::string> heads = {"counter", "value"};
  if (before != nullptr) {
    data["per_second"] = Json::object();
    heads.emplace_back("rate");
  }
  TextTable table(std::move(heads));
  for (const Count& count : now.counts) {
    std::vector<std::string> row = {count.name, std::to_string(count.value)};
    data["counters"][count.name] = count.value;
    if (before != nullptr) {
      const double rate = per_second(*before, now, count);
      data["per_second"][count.name] = rate;
      row.push_back(base::formatted("%.0f/s", rate));
    }
    table.add(std::move(row));
  }
  print_result(context, data,
               watch ? time_of_day() + "  " + card + "\n" + table.text() + "\n" : table.text(),
               watch ? -1 : 2);
}

int counters(const GlobalOptions& context, Options& options) {
  LookedAtCard looked;
  if (options.card.open_to_look(context, &looked) != 0) {
    return kExitFailed;
  }
  const std::string card = looked.bus->name();
  if (!looked.card->blocks().has_port()) {
    return complain(card + " has no port block", "update the gateware");
  }
  std::optional<PortSample> before;
  do {
    PortSample now;
    if (options.watch) {
      looked.let_work();
    }
    if (take_sample(*looked.card, &now) != 0) {
      return kExitFailed;
    }
    print_sample(context, options.watch, card, now, before ? &*before : nullptr);
    before = std::move(now);
  } while (options.watch && options.pace.next());
  return kExitOk;
}

}  // namespace

void add_counters(CLI::App& app, GlobalOptions& context) {
  const auto [command, options] = add_command(
      app, context, "counters", "Show the counters of port and barriers; rates with --watch",
      "Counters have 32 bits and wrap. \"posted\" is how far the program behind a running ring "
      "has\n"
      "posted (its TAIL). Barrier engines that were used show their notifications: sent, "
      "received,\n"
      "early (before the barrier was posted), refused or answered RETRY (nacks), sent again, "
      "stale,\n"
      "foreign (not awaited), and barriers that were cancelled. Works beside that program.\n\n"
      "Examples\n  rio-tool counters\n  rio-tool counters --watch --interval 0.5\n"
      "  rio-tool --json counters --watch --count 60 > minute.jsonl",
      counters);
  options.card.add_to(command);
  command.add_flag("--watch", options.watch, "Again and again, with rates; JSON: one line each");
  options.pace.add_to(command);
}

}  // namespace rio::tool
