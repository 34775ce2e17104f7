// rio-tool counters: what the port counts, once or live.
#include <cstdio>
#include <optional>

#include "apps/tool/card_option.hpp"
#include "apps/tool/command.hpp"
#include "apps/tool/pace.hpp"
#include "apps/tool/port_errors.hpp"

namespace rio::tool {
namespace {

struct Options {
  CardOption card;
  bool watch = false;
  Pace pace;
};

Json sample_json(const std::string& card, const PortSample& now, const PortSample* before) {
  Json counts = Json::object();
  Json rates = Json::object();
  for (const Count& count : now.counts) {
    counts[count.name] = count.value;
    if (before != nullptr) {
      rates[count.name] = per_second(*before, now, count);
    }
  }
  Json out = {{"time", utc_text()}, {"card", card}, {"port", 0}, {"counters", counts}};
  if (before != nullptr) {
    out["per_second"] = rates;
  }
  return out;
}

std::string rate_text(double rate) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.0f/s", rate);
  return text;
}

std::string sample_text(const PortSample& now, const PortSample* before) {
  TextTable table(before == nullptr ? std::vector<std::string>{"counter", "value"}
                                    : std::vector<std::string>{"counter", "value", "rate"});
  for (const Count& count : now.counts) {
    std::vector<std::string> row = {count.name, std::to_string(count.value)};
    if (before != nullptr) {
      row.push_back(rate_text(per_second(*before, now, count)));
    }
    table.add(std::move(row));
  }
  return table.text();
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
    const PortSample* const old = before ? &*before : nullptr;
    const std::string text = sample_text(now, old);
    print_result(context, sample_json(card, now, old),
                 options.watch ? time_of_day() + "  " + card + "\n" + text + "\n" : text,
                 options.watch ? -1 : 2);
    before = std::move(now);
  } while (options.watch && options.pace.next());
  return kExitOk;
}

}  // namespace

void add_counters(CLI::App& app, GlobalOptions& context) {
  const auto [command, options] = add_command(
      app, context, "counters", "Show the port's counters; rates with --watch",
      "Counters have 32 bits and wrap. \"posted\" is how far the program behind a running ring "
      "has\n"
      "posted (its TAIL). Works beside that program.\n\n"
      "Examples\n  rio-tool counters\n  rio-tool counters --watch --interval 0.5\n"
      "  rio-tool --json counters --watch --count 60 > minute.jsonl",
      counters);
  options.card.add_to(command);
  command.add_flag("--watch", options.watch, "Again and again, with rates; JSON: one line each");
  options.pace.add_to(command);
}

}  // namespace rio::tool
