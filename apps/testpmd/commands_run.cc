// start, stop, wait, set, faults, help, quit.
#include <algorithm>
#include <cstdio>

#include "apps/common/columns.hpp"
#include "apps/testpmd/console.hpp"
#include "apps/testpmd/report.hpp"
#include "apps/testpmd/text.hpp"
#include "apps/testpmd/watch.hpp"

namespace rio::testpmd {
namespace {

int start(Console& console, Args, std::string* error) {
  const Options& options = console.session.options;
  if (options.sizes.size() > 1) {
    return fail(error, "a sweep does not run at the prompt; set one size");
  }
  return console.session.start(options.sizes.front(), error);
}

/// Bring the run to its end by `how`, and show what it gave.
int end_run(TestRun& session, void (*how)(TestRun&), std::string* error) {
  if (session.running() == nullptr) {
    return fail(error, "nothing is running; start begins a run");
  }
  how(session);
  std::fputs(totals_text(session.finish()).c_str(), stdout);
  return 0;
}

int stop(Console& console, Args, std::string* error) {
  const auto ask = [](TestRun& session) { session.running()->request_stop(); };
  return end_run(console.session, ask, error);
}

/// Show the run until it ends, or Ctrl-C.
int wait(Console& console, Args, std::string* error) {
  return end_run(console.session, watch, error);
}

int set(Console& console, Args args, std::string* error) {
  const char* const name = args[0].c_str();
  const OptionDef* option = find_option(args[0]);
  if (option == nullptr || !option->at_prompt) {
    return fail(error, "set: no option '%s'; help names them", name);
  }
  if (console.session.running() != nullptr) {
    return fail(error, "set: a run is in progress; stop it first");
  }
  if (option->value != nullptr && args.size() < 2) {
    return fail(error, "set %s wants a value: %s", name, option->value);
  }
  Options changed = console.session.options;
  if (option->set(changed, args.size() > 1 ? args[1] : "", error) != 0) {
    return fail(error, "set %s: %s", name, error->c_str());
  }
  if (args[0] == "count") {  // at the prompt the later one replaces the other
    changed.seconds = 0;
  } else if (args[0] == "seconds") {
    changed.count = 0;
  }
  if (find_mode(changed.mode, error) == nullptr) {
    return fail(error, "set mode: no mode '%s'; help names them", changed.mode.c_str());
  }
  console.session.options = changed;
  return 0;
}

/// At once, also while a run is in progress.
int faults(Console& console, Args args, std::string* error) {
  Options changed = console.session.options;
  if (args[0] == "off") {
    changed.fault_rate = 0;
  } else if (find_option("faults")->set(changed, args[0], error) != 0) {
    return fail(error, "faults: %s", error->c_str());
  }
  for (const auto& port : console.session.ports()) {
    if (port->set_faults(changed) != 0) {
      return fail(error, "faults: %s is not an emulated card of this process", port->name.c_str());
    }
  }
  console.session.options.fault_seed = changed.fault_seed;
  console.session.options.fault_rate = changed.fault_rate;
  return 0;
}

int help(Console&, Args, std::string*) {
  size_t widest = 0;
  for (const Command& command : all_commands()) {
    widest = std::max(widest, apps::columns_of(usage(command)));
  }
  for (const Command& command : all_commands()) {
    std::printf("  %s  %s\n", apps::padded(usage(command), widest).c_str(), command.help);
  }
  std::printf("\nset takes:");
  for (const OptionDef& option : option_table()) {
    if (option.at_prompt) {
      std::printf(" %s", option.name);
    }
  }
  std::printf("\nmodes:");
  for (const Mode* mode : mode_table()) {
    std::printf(" %s", mode->name);
  }
  std::printf("\n");
  return 0;
}

int quit(Console& console, Args, std::string*) {
  console.quit = true;
  return 0;
}

constexpr Command kCommands[] = {
    {"start", "", "begin a run with what is set", start},
    {"stop", "", "end it, and show the totals", stop},
    {"wait", "", "watch it until it ends, or Ctrl-C", wait},
    {"set", "OPTION [VALUE]", "an option as on the command line", set},
    {"faults", "SEED:RATE|off", "let the emulated cards fail, from now on", faults},
    {"help", "", "this list", help},
    {"quit", "", "end a run, and the program", quit},
};

}  // namespace

std::span<const Command> run_commands() {
  return kCommands;
}

}  // namespace rio::testpmd
