// rio-tool bind and unbind: give cards to a driver, take them from their drivers.
#include "apps/tool/command.hpp"
#include "apps/tool/system/binding.hpp"

namespace rio::tool {
namespace {

struct Options {
  std::string driver;
  std::vector<std::string> addresses;
  bool force = false;
};

std::string shown(const std::string& driver) {
  return driver.empty() ? "no driver" : driver;
}

/// Change the driver of each card, and print it before and after. @param verb of messages.
/// @param change returns 0, or -errno, said on stderr. Its `after`: the card's driver now (with -n
/// the one that it would get), empty if none.
template <class Change>
int change_all(const GlobalOptions& context, const Options& options, const char* verb,
               Change change) {
  SysfsWriter writer(context);
  Json cards = Json::array();
  std::string text;
  int code = kExitOk;
  for (const std::string& address : options.addresses) {
    pci::PciCard card;
    std::string after;
    if (find_to_change(context, address, verb, options.force, &card) != 0 ||
        change(writer, card, &after) != 0) {
      code = kExitFailed;
      continue;
    }
    cards.push_back({{"address", card.address}, {"before", card.driver}, {"after", after}});
    text.append(card.address).append(": ").append(shown(card.driver));
    text.append(" -> ").append(shown(after)).append("\n");
  }
  print_result(
      context,
      {{"cards", cards}, {"writes", writer.data()}, {"done", code == kExitOk && !context.dry_run}},
      context.dry_run ? writer.text() : text);
  return code;
}

int bind(const GlobalOptions& context, Options& options) {
  return change_all(context, options, "bound",
                    [&](SysfsWriter& writer, const pci::PciCard& card, std::string* after) {
                      *after = options.driver.empty() ? wanted_driver(card) : options.driver;
                      const int rc = bind_card(context, writer, card, *after);
                      *after = context.dry_run ? *after : driver_of(context.paths, card.address);
                      return rc;
                    });
}

int unbind(const GlobalOptions& context, Options& options) {
  return change_all(context, options, "unbound",
                    [&](SysfsWriter& writer, const pci::PciCard& card, std::string*) {
                      return unbind_card(context, writer, card);
                    });
}

void add_common(CLI::App& command, Options& options) {
  command.add_option("address", options.addresses, "Cards, as rio-tool list names them")
      ->required()
      ->type_name("ADDRESS");
  command.add_flag("--force", options.force,
                   "Also a device that is no card, and one that a program uses");
}

}  // namespace

void add_bind(CLI::App& app, GlobalOptions& context) {
  const auto [command, options] =
      add_command(app, context, "bind", "Give cards to a driver",
                  "Examples\n"
                  "  rio-tool bind 0000:03:00.0\n"
                  "  rio-tool -n bind 0000:03:00.0                 what would be written\n"
                  "  rio-tool bind --driver default 0000:03:00.0   back to the kernel",
                  bind);
  command
      .add_option("--driver", options.driver,
                  "vfio-pci, uio_pci_generic, igb_uio, the name of a kernel driver, or\n"
                  "default: whichever the kernel chooses. If not given: vfio-pci where\n"
                  "the card is in an IOMMU group, else uio_pci_generic")
      ->type_name("vfio-pci|uio_pci_generic|igb_uio|default|DRIVER");
  add_common(command, options);
}

void add_unbind(CLI::App& app, GlobalOptions& context) {
  const auto [command, options] = add_command(
      app, context, "unbind", "Take cards from their drivers",
      "Examples\n  rio-tool unbind 0000:03:00.0\n  rio-tool -n unbind 0000:03:00.0", unbind);
  add_common(command, options);
}

}  // namespace rio::tool
