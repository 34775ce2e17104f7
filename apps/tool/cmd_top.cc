// rio-tool top: ports and queues of running programs, live.
#include <unistd.h>

#include <chrono>
#include <thread>

#include "apps/tool/command.hpp"
#include "apps/tool/pace.hpp"
#include "apps/tool/screen.hpp"
#include "apps/tool/top_data.hpp"

namespace rio::tool {
namespace {

struct Options {
  bool once = false;
  std::string runtime_dir = default_runtime_dir();
  Pace pace;
};

/// Two rounds, so that there are rates.
int once(const GlobalOptions& context, const Options& options, TopSource& source) {
  TopData data;
  source.ask(&data);
  if (!data.programs.empty() || !data.message_ports.empty()) {
    std::this_thread::sleep_for(std::chrono::duration<double>(options.pace.interval_s()));
    source.ask(&data);
  }
  return print_result(context, top_json(data), top_text(data));
}

/// Not on a terminal: a page after the other, or a line of JSON.
int stream(const GlobalOptions& context, Pace& pace, TopSource& source) {
  do {
    TopData data;
    source.ask(&data);
    print_result(context, top_json(data), time_of_day() + "\n" + top_text(data), -1);
  } while (pace.next());
  return kExitOk;
}

int live(Pace& pace, TopSource& source) {
  Screen screen;
  if (!screen.usable()) {
    return complain("this terminal cannot be drawn on", "set TERM, or use --once");
  }
  uint64_t shown = 0;
  do {
    TopData data;
    source.ask(&data);
    screen.show("rio-tool top  " + time_of_day() + "  q quits, arrows scroll", top_text(data));
  } while (++shown != pace.count() && screen.wait(pace.interval_s()));
  return kExitOk;
}

int top(const GlobalOptions& context, Options& options) {
  TopSource source(options.runtime_dir);
  if (options.once) {
    return once(context, options, source);
  }
  const bool terminal = isatty(STDOUT_FILENO) == 1 && isatty(STDIN_FILENO) == 1;
  return terminal && !context.json ? live(options.pace, source)
                                   : stream(context, options.pace, source);
}

}  // namespace

void add_top(CLI::App& app, GlobalOptions& context) {
  const auto [command, options] = add_command(
      app, context, "top", "Ports, queues and rails of running programs, live",
      "On a terminal: q quits, arrows and pages scroll. Elsewhere: a page, or a line of JSON, for\n"
      "each interval. \"fill\" is how many entries of a ring are posted and have not come back.\n"
      "DPDK programs answer by their telemetry. Message ports with several cards show the counts\n"
      "of each card in a file, in RIO_RUNTIME_DIR or /dev/shm, four times a second.\n\n"
      "Examples\n  rio-tool top\n  rio-tool top --once --interval 5\n"
      "  rio-tool --json top --count 60 > minute.jsonl",
      top);
  command.add_flag("--once", options.once, "One page, with the rates of one interval");
  command
      .add_option("--runtime-dir", options.runtime_dir,
                  "Where the programs have their sockets: DIR/PREFIX/dpdk_telemetry.v2")
      ->capture_default_str();
  options.pace.add_to(command);
}

}  // namespace rio::tool
