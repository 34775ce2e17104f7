// start, stop, wait, set, faults, help, quit.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

#include "apps/common/columns.hpp"
#include "apps/testpmd/console.hpp"
#include "apps/testpmd/report.hpp"
#include "apps/testpmd/watch.hpp"

namespace rio::testpmd {
namespace {

int start(Console& console, Args, std::string* error) {
  const Options& options = console.session.options;
  if (options.sizes.size() > 1) {
    *error = "a sweep does not run at the prompt; set one size";
    return -EINVAL;
  }
  return console.session.start(options.sizes.front(), error);
}

/// Bring the run to its end by `how`, and show what it gave.
int end_run(TestRun& session, void (*how)(TestRun&), std::string* error) {
  if (session.running() == nullptr) {
    *error = "nothing is running; start begins a run";
    return -EINVAL;
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
  const OptionDef* option = find_option(args[0]);
  if (option == nullptr || !option->at_prompt) {
    *error = "set: no option '" + args[0] + "'; help names them";
    return -EINVAL;
  }
  if (console.session.running() != nullptr) {
    *error = "set: a run is in progress; stop it first";
    return -EBUSY;
  }
  if (option->value != nullptr && args.size() < 2) {
    *error = "set " + args[0] + " wants a value: " + option->value;
    return -EINVAL;
  }
  Options changed = console.session.options;
  std::string why;
  if (option->set(changed, args.size() > 1 ? args[1] : "", &why) != 0) {
    *error = "set " + args[0] + ": " + why;
    return -EINVAL;
  }
  if (args[0] == "count") {  // at the prompt the later one replaces the other
    changed.seconds = 0;
  } else if (args[0] == "seconds") {
    changed.count = 0;
  }
  if (find_mode(changed.mode, &why) == nullptr) {
    *error = "set mode: no mode '" + changed.mode + "'; help names them";
    return -EINVAL;
  }
  console.session.options = changed;
  return 0;
}

std::vector<std::string> set_words(Console&, size_t index) {
  std::vector<std::string> words;
  if (index == 0) {
    for (const OptionDef& option : option_table()) {
      if (option.at_prompt) {
        words.emplace_back(option.name);
      }
    }
  } else {
    for (const Mode* mode : mode_table()) {
      words.emplace_back(mode->name);
    }
  }
  return words;
}

/// At once, also while a run is in progress.
int faults(Console& console, Args args, std::string* error) {
  Options changed = console.session.options;
  if (args[0] == "off") {
    changed.fault_rate = 0;
  } else {
    std::string why;
    if (find_option("faults")->set(changed, args[0], &why) != 0) {
      *error = "faults: " + why;
      return -EINVAL;
    }
  }
  for (const auto& port : console.session.ports()) {
    if (port->set_faults(changed.fault_seed + port->index(), changed.fault_rate) != 0) {
      *error = "faults: " + port->name() + " is not an emulated card of this process";
      return -ENOTSUP;
    }
  }
  console.session.options.fault_seed = changed.fault_seed;
  console.session.options.fault_rate = changed.fault_rate;
  return 0;
}

int help(Console&, Args, std::string*) {
  size_t widest = 0;
  for (const Command* command : all_commands()) {
    widest = std::max(widest, apps::columns_of(usage(*command)));
  }
  for (const Command* command : all_commands()) {
    std::printf("  %s  %s\n", apps::padded(usage(*command), widest).c_str(), command->help);
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

constexpr std::array kCommands = {
    Command{"start", "", "begin a run with what is set", 0, 0, start, nullptr},
    Command{"stop", "", "end it, and show the totals", 0, 0, stop, nullptr},
    Command{"wait", "", "watch it until it ends, or Ctrl-C", 0, 0, wait, nullptr},
    Command{"set", "OPTION [VALUE]", "an option as on the command line", 1, 2, set, set_words},
    Command{"faults", "SEED:RATE|off", "let the emulated cards fail, from now on", 1, 1, faults,
            nullptr},
    Command{"help", "", "this list", 0, 0, help, nullptr},
    Command{"quit", "", "end a run, and the program", 0, 0, quit, nullptr},
};

}  // namespace

std::span<const Command> run_commands() {
  return kCommands;
}

}  // namespace rio::testpmd
