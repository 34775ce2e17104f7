// rio-tool reset: bring a card back.
#include "apps/tool/command.hpp"
#include "apps/tool/system/binding.hpp"
#include "apps/tool/system/card_state.hpp"
#include "apps/tool/system/files.hpp"

namespace rio::tool {
namespace {

struct Options {
  std::string address;
  bool flr = false;
  bool bus = false;
  bool rescan = false;
  bool force = false;
};

/// Suggest another way, where the kernel has no reset by this method, or it failed.
std::string other_way(const GlobalOptions& context, const std::string& address,
                      const std::string& method) {
  const std::string bridge = bridge_of(context.paths, address);
  const std::string rescan = "rio-tool reset --rescan " + address;
  if (bridge.empty()) {
    return rescan + " (there is no bridge above it, whose bus could be reset)";
  }
  return method == "flr" ? "rio-tool reset --bus " + address
                         : "setpci -s " + bridge + " BRIDGE_CONTROL=40:40; sleep 0.1; setpci -s " +
                               bridge + " BRIDGE_CONTROL=0:40; sleep 1; " + rescan;
}

/// Ask the kernel for a reset by one method; what it would take otherwise is put back after it.
int reset_by(const GlobalOptions& context, SysfsWriter& writer, const std::string& address,
             const std::string& method) {
  const std::string folder = device_folder(context.paths, address);
  const std::string methods_path = folder + "/reset_method";
  const std::string others = other_way(context, address, method);
  const std::string methods = text_of(methods_path);
  if ((" " + methods + " ").find(" " + method + " ") == std::string::npos) {
    return complain(address + ": the kernel has no " + method + " reset for it (" +
                        (!exists(methods_path) ? methods_path + " is not there"
                         : methods.empty()     ? "it has: none"
                                               : "it has: " + methods) +
                        ")",
                    others);
  }
  if (writer.write(methods_path, method) != 0) {
    return kExitFailed;
  }
  const int rc = writer.write(folder + "/reset", "1", others);
  return writer.write(methods_path, methods) != 0 || rc != 0 ? kExitFailed : kExitOk;
}

/// Take the card off the bus and look for it anew: its BARs, and all else that was read when it
/// came, are read again. It gets back the driver that it had.
int rescan(const GlobalOptions& context, SysfsWriter& writer, const pci::PciCard& card) {
  const std::string folder = device_folder(context.paths, card.address);
  if (writer.write(folder + "/remove", "1") != 0) {
    return kExitFailed;
  }
  if (!writer.wait_for([&] { return !exists(folder); })) {
    return complain(card.address + ": the kernel does not let go of it",
                    "end the programs that use it: rio-tool doctor names them");
  }
  if (writer.write(context.paths.sysfs + "/bus/pci/rescan", "1") != 0) {
    return kExitFailed;
  }
  if (!writer.wait_for([&] { return exists(folder + "/config"); })) {
    return complain(card.address + ": it did not come back",
                    "load its gateware, then: echo 1 > /sys/bus/pci/rescan; reboot if that does "
                    "not help");
  }
  // A device that was found anew has forgotten its driver_override.
  pci::PciCard again = card;
  again.driver = context.dry_run ? "" : driver_of(context.paths, card.address);
  if (!card.driver.empty() && again.driver != card.driver) {
    return bind_card(context, writer, again, card.driver) == 0 ? kExitOk : kExitFailed;
  }
  return kExitOk;
}

int reset(const GlobalOptions& context, Options& options) {
  pci::PciCard card;
  if (find_to_change(context, options.address, "reset", options.force, &card) != 0) {
    return kExitFailed;
  }
  SysfsWriter writer(context);
  const char* what = options.flr ? "function-level reset" : options.bus ? "bus reset" : "rescan";
  const int code = options.rescan
                       ? rescan(context, writer, card)
                       : reset_by(context, writer, card.address, options.flr ? "flr" : "bus");
  if (code != kExitOk) {
    return code;
  }
  return print_result(context,
                      {{"address", card.address},
                       {"reset", what},
                       {"writes", writer.data()},
                       {"done", !context.dry_run}},
                      context.dry_run ? writer.text() : card.address + ": " + what + " done\n");
}

}  // namespace

void add_reset(CLI::App& app, GlobalOptions& context) {
  const auto [command, options] =
      add_command(app, context, "reset", "Reset a card, or find it anew",
                  "Examples\n"
                  "  rio-tool reset --flr 0000:03:00.0\n"
                  "  rio-tool reset --rescan 0000:03:00.0      after loading another gateware",
                  reset);
  command.add_option("address", options.address, "Card, as rio-tool list names it")
      ->required()
      ->type_name("ADDRESS");
  CLI::Option_group* how = command.add_option_group("How", "One of");
  how->add_flag("--flr", options.flr, "Function-level reset: registers and queues of this card");
  how->add_flag("--bus", options.bus, "Secondary bus reset: all behind the bridge above");
  how->add_flag("--rescan", options.rescan,
                "Remove it and look for it anew: after its FPGA was reprogrammed");
  how->require_option(1);
  command.add_flag("--force", options.force,
                   "Also a device that is no card, and one that a program uses");
}

}  // namespace rio::tool
