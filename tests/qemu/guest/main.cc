// pci-guest: the driver without EAL on a card of the guest, one subcommand per run.
#include <array>
#include <cstdio>
#include <cstring>

#include "tests/qemu/guest/guest.hpp"

namespace {

struct Command {
  const char* name;
  size_t cards;
  int (*run)(const rio::guest::Arguments& args);
};

constexpr std::array kCommands = {
    Command{"find", 1, rio::guest::find},
    Command{"find", 2, rio::guest::find},
    Command{"messages", 1, rio::guest::messages},
    Command{"large", 1, rio::guest::large_memory},
    Command{"dedicated", 1, rio::guest::dedicated},
    Command{"dma", 1, rio::guest::remote_memory},
    Command{"doorbells", 1, rio::guest::doorbells},
    Command{"pair", 2, rio::guest::pair},
    Command{"functions", 2, rio::guest::functions},
    Command{"interrupts", 1, rio::guest::interrupts},
    Command{"memory", 1, rio::guest::user_memory},
    Command{"memory-uio", 1, rio::guest::user_memory_uio},
    Command{"unmapped", 1, rio::guest::unmapped},
    Command{"killed", 1, rio::guest::killed},
    Command{"lost-state", 1, rio::guest::lost_state},
    Command{"vanished", 1, rio::guest::vanished},
    Command{"unbound", 1, rio::guest::unbound},
};

}  // namespace

int main(int argc, char** argv) {
  const rio::guest::Arguments args(argv + (argc > 1 ? 2 : 1), argv + argc);
  for (const Command& command : kCommands) {
    if (argc > 1 && std::strcmp(argv[1], command.name) == 0 && args.size() == command.cards) {
      return command.run(args);
    }
  }
  std::string known;
  for (const Command& command : kCommands) {
    known += std::string("\n  ") + command.name + (command.cards == 2 ? " CARD CARD" : " CARD");
  }
  std::printf("pci-guest: wrong command line; it takes one of:%s\n", known.c_str());
  return 2;
}
