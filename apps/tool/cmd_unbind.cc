// rio-tool unbind: take cards from their drivers.
#include <memory>

#include "apps/tool/command.hpp"
#include "apps/tool/system/binding.hpp"
#include "apps/tool/system/binding_report.hpp"

namespace rio::tool {
namespace {

struct Options {
  std::vector<std::string> addresses;
  bool force = false;
};

int unbind(const GlobalOptions& context, const Options& options) {
  SysfsWriter writer(context);
  BindingReport report;
  int code = kExitOk;
  for (const std::string& address : options.addresses) {
    pci::PciCard card;
    if (find_to_change(context, address, "unbound", options.force, &card) != 0 ||
        unbind_card(context, writer, card) != 0) {
      code = kExitFailed;
      continue;
    }
    report.add(card, "");
  }
  report.print(context, writer, code);
  return code;
}

}  // namespace

void add_unbind(CLI::App& app, GlobalOptions& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("unbind", "Take cards from their drivers");
  command->add_option("address", options->addresses, "Cards, as rio-tool list names them")
      ->required()
      ->type_name("ADDRESS");
  command->add_flag("--force", options->force,
                    "Also a device that is no card, and one that a program uses");
  command->footer("Examples\n  rio-tool unbind 0000:03:00.0\n  rio-tool -n unbind 0000:03:00.0");
  command->callback([&context, options] { context.exit_code = unbind(context, *options); });
}

}  // namespace rio::tool
