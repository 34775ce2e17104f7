// rio-tool: brings a RapidIO card up, and looks at it.
#include "apps/common/std_streams.hpp"
#include "apps/tool/command.hpp"

namespace rio::tool {
namespace {

constexpr const char* kFooter = R"(Examples
  rio-tool list                         which cards are there
  rio-tool list --help                  each command has examples of its own

Exit code
  0  done
  1  it could not be done; the reason and a remedy are on stderr
  2  wrong command line
  3  done, and something is wrong with what was looked at)";

void add_global_options(CLI::App& app, Context& context, std::string* root) {
  app.add_flag("--json", context.json, "Print JSON");
  app.add_flag("-n,--dry-run", context.dry_run, "Say what would be changed, change nothing");
  app.add_option("--root", *root,
                 "Look at a copy of a system below this folder (sys, proc, dev), not at this one")
      ->check(CLI::ExistingDirectory);
  app.fallthrough();
  app.require_subcommand(1);
  app.footer(kFooter);
}

int program(int argc, char** argv) {
  Context context;
  std::string root;
  CLI::App app("Brings a RapidIO card up, and looks at it.", "rio-tool");
  add_global_options(app, context, &root);
  // Runs before the subcommands' callbacks.
  app.parse_complete_callback([&] {
    if (!root.empty()) {
      context.paths = {.sysfs = root + "/sys", .dev = root + "/dev", .proc = root + "/proc"};
    }
  });
  for (const AddCommand add : command_table()) {
    add(app, context);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;  // 0: help
  }
  return context.exit_code;
}

}  // namespace
}  // namespace rio::tool

int main(int argc, char** argv) {
  return rio::apps::run_program("rio-tool", rio::tool::program, argc, argv);
}
