// rio-tool unbind: take cards from their drivers.
#include <memory>

#include "apps/tool/command.hpp"
#include "apps/tool/system/binding.hpp"

namespace rio::tool {
namespace {

struct Options {
  std::vector<std::string> addresses;
  bool force = false;
};

int unbind(const Context& context, const Options& options) {
  SysfsWriter writer(context);
  Json data = Json::array();
  std::string text;
  int code = kExitOk;
  for (const std::string& address : options.addresses) {
    pmd::vfio::PciCard card;
    if (find_to_change(context, address, "unbound", options.force, &card) != 0 ||
        unbind_card(context, writer, card) != 0) {
      code = kExitFailed;
      continue;
    }
    data.push_back({{"address", card.address}, {"before", card.driver}, {"after", ""}});
    text.append(card.address).append(": ").append(card.driver.empty() ? "no driver" : card.driver);
    text.append(" -> no driver\n");
  }
  print_result(
      context,
      {{"cards", data}, {"writes", writer.data()}, {"done", code == kExitOk && !context.dry_run}},
      context.dry_run ? writer.text() : text);
  return code;
}

}  // namespace

void add_unbind(CLI::App& app, Context& context) {
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
