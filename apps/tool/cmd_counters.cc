// rio-tool counters: what the port counts, once or live.
#include <cinttypes>
#include <cstdio>
#include <memory>

#include "apps/tool/card_option.hpp"
#include "apps/tool/command.hpp"
#include "apps/tool/pace.hpp"
#include "apps/tool/port_sample.hpp"

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

int watch(const GlobalOptions& context, Options& options, const LookedAtCard& looked) {
  PortSample before;
  bool first = true;
  do {
    looked.let_work();
    PortSample now;
    if (take_sample(*looked.card, &now) != 0) {
      return kExitFailed;
    }
    const PortSample* const old = first ? nullptr : &before;
    if (context.json) {
      std::printf("%s\n", json_text(sample_json(looked.bus->name(), now, old)).c_str());
    } else {
      std::printf("%s  %s\n%s\n", time_of_day().c_str(), looked.bus->name().c_str(),
                  sample_text(now, old).c_str());
    }
    before = std::move(now);
    first = false;
  } while (options.pace.next());
  return kExitOk;
}

int counters(const GlobalOptions& context, Options& options) {
  std::string name;
  LookedAtCard looked;
  if (options.card.resolve(context, &name) != 0 || open_to_look(context, name, &looked) != 0) {
    return kExitFailed;
  }
  if (!looked.card->blocks().has_port()) {
    return complain(looked.bus->name() + " has no port block", "update the gateware");
  }
  if (options.watch) {
    return watch(context, options, looked);
  }
  PortSample now;
  if (take_sample(*looked.card, &now) != 0) {
    return kExitFailed;
  }
  print_result(context, sample_json(looked.bus->name(), now, nullptr), sample_text(now, nullptr));
  return kExitOk;
}

}  // namespace

void add_counters(CLI::App& app, GlobalOptions& context) {
  CLI::App* command =
      app.add_subcommand("counters", "Show the port's counters; rates with --watch");
  const auto options = std::make_shared<Options>();
  options->card.add_to(*command);
  command->add_flag("--watch", options->watch, "Again and again, with rates; JSON: one line each");
  options->pace.add_to(*command);
  command->footer(
      "Counters have 32 bits and wrap. \"posted\" is how far the program behind a running ring "
      "has\n"
      "posted (its TAIL). Works beside that program.\n\n"
      "Examples\n  rio-tool counters\n  rio-tool counters --watch --interval 0.5\n"
      "  rio-tool --json counters --watch --count 60 > minute.jsonl");
  command->callback([&context, options] { context.exit_code = counters(context, *options); });
}

}  // namespace rio::tool
