// rio-tool: brings up and inspects RapidIO message cards.
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "apps/common/std_streams.hpp"
#include "apps/tool/command.hpp"
#include "apps/tool/words.hpp"

namespace rio::tool {
namespace {

constexpr const char* kFooter = R"(Examples
  rio-tool list                         which cards are there
  rio-tool doctor                       what is wrong with this machine, and what mends it
  rio-tool selftest --card emu:loop     a test of every ring, here of an emulated card
  rio-tool list --help                  each command has examples of its own

Exit code
  0  done
  1  it could not be done; the reason and a remedy are on stderr
  2  wrong command line
  3  done, and something is wrong with what was looked at)";

void add_global_options(CLI::App& app, GlobalOptions& context) {
  app.add_flag("--json", context.json, "Print JSON");
  app.add_flag("-n,--dry-run", context.dry_run, "Say what would be changed, change nothing");
  app.add_option("--root", context.root,
                 "Look at a copy of a system below this folder (sys, proc, dev),\n"
                 "not at this one")
      ->check(CLI::ExistingDirectory);
  app.set_version_flag("--version", "rio-tool " RIO_VERSION, "Print the version and exit");
  app.fallthrough();
  app.require_subcommand(1);
  app.footer(kFooter);
}

/// CLI11 only says that a command is missing: name the word that is none, and what was meant.
/// @return whether there was such a word.
bool complain_of_unknown_command(const CLI::App& app) {
  const std::vector<std::string> words = app.remaining();
  const auto word = std::find_if(words.begin(), words.end(),
                                 [](const std::string& one) { return one.rfind('-', 0) != 0; });
  if (word == words.end()) {
    if (!words.empty()) {
      (void)complain("no option \"" + words.front() + "\" without a command",
                     "rio-tool --help lists them");
    }
    return !words.empty();
  }
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  const std::string meant = nearest_word(*word, names);
  (void)complain("no command \"" + *word + "\"",
                 meant.empty() ? "rio-tool --help lists them" : "did you mean \"" + meant + "\"?");
  return true;
}

/// A mapped BAR that the kernel has taken away, as a program opened the card, answers so.
void on_bus_error(int) {
  static constexpr char kText[] =
      "rio-tool: error: the card's registers cannot be reached any more: a program has opened it, "
      "or it was bound anew or reset\n"
      "rio-tool: remedy: once more, as root; rio-tool then looks at it beside that program\n";
  (void)!write(STDERR_FILENO, kText, sizeof(kText) - 1);
  _exit(kExitFailed);
}

/// @return the command, as far as it was understood, with --help.
std::string help_command(const CLI::App& app) {
  std::string text = app.get_name();
  for (auto commands = app.get_subcommands(); !commands.empty();
       commands = commands.front()->get_subcommands()) {
    text.append(" ").append(commands.front()->get_name());
  }
  return text.append(" --help");
}

int program(int argc, char** argv) {
  std::signal(SIGBUS, on_bus_error);
  GlobalOptions context;
  CLI::App app("Bring up and inspect RapidIO message cards.", "rio-tool");
  add_global_options(app, context);
  // Runs before the subcommands' callbacks.
  app.parse_complete_callback([&] {
    if (const std::string& root = context.root; !root.empty()) {
      context.paths = {.sysfs = root + "/sys", .dev = root + "/dev", .proc = root + "/proc"};
    }
  });
  for (const AddCommand add : kCommands) {
    add(app, context);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    if (!app.get_subcommands().empty() || !complain_of_unknown_command(app)) {
      (void)complain(error.what(), help_command(app) + " shows what it takes, with examples");
    }
    return kExitUsage;
  }
  return context.exit_code;
}

}  // namespace
}  // namespace rio::tool

int main(int argc, char** argv) {
  return rio::apps::run_program("rio-tool", rio::tool::program, argc, argv);
}
