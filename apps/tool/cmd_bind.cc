// rio-tool bind: give cards to a driver.
#include <memory>

#include "apps/tool/command.hpp"
#include "apps/tool/system/binding.hpp"
#include "apps/tool/system/binding_report.hpp"

namespace rio::tool {
namespace {

struct Options {
  std::string driver;
  std::vector<std::string> addresses;
  bool force = false;
};

int bind(const GlobalOptions& context, const Options& options) {
  SysfsWriter writer(context);
  BindingReport report;
  int code = kExitOk;
  for (const std::string& address : options.addresses) {
    pci::PciCard card;
    if (find_to_change(context, address, "bound", options.force, &card) != 0) {
      code = kExitFailed;
      continue;
    }
    const std::string driver = options.driver.empty() ? wanted_driver(card) : options.driver;
    if (bind_card(context, writer, card, driver) != 0) {
      code = kExitFailed;
      continue;
    }
    report.add(card, context.dry_run ? driver : driver_of(context.paths, card.address));
  }
  report.print(context, writer, code);
  return code;
}

}  // namespace

void add_bind(CLI::App& app, GlobalOptions& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("bind", "Give cards to a driver");
  command
      ->add_option("--driver", options->driver,
                   "vfio-pci, uio_pci_generic, igb_uio, the name of a kernel driver, or\n"
                   "default: whichever the kernel chooses. If not given: vfio-pci where\n"
                   "the card is in an IOMMU group, else uio_pci_generic")
      ->type_name("vfio-pci|uio_pci_generic|igb_uio|default|DRIVER");
  command->add_option("address", options->addresses, "Cards, as rio-tool list names them")
      ->required()
      ->type_name("ADDRESS");
  command->add_flag("--force", options->force,
                    "Also a device that is no card, and one that a program uses");
  command->footer(
      "Examples\n"
      "  rio-tool bind 0000:03:00.0\n"
      "  rio-tool -n bind 0000:03:00.0                 what would be written\n"
      "  rio-tool bind --driver default 0000:03:00.0   back to the kernel");
  command->callback([&context, options] { context.exit_code = bind(context, *options); });
}

}  // namespace rio::tool
