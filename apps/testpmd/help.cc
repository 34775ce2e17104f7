#include <sstream>

#include "apps/common/columns.hpp"
#include "apps/testpmd/options.hpp"

namespace rio::testpmd {
namespace {

constexpr const char* kModes = R"(
Modes
  io          what a port receives is forwarded, zero-copy
  txonly      every port sends, and drops what comes in
  rxonly      ports receive and drop; of two ports wired together the second sends
  flowgen     every port sends --flows flows over all mailboxes
  pingpong    one message to and fro between two ports: half a round trip
  dedicated   every port streams into all dedicated queues of its peer; --size up to 1 MiB
  doorbell    every port sends doorbells
  rdma        every port reads or writes its peer's memory; --op
)";

constexpr const char* kExamples = R"(
Examples (two emulated cards, wired to each other)
  E="-l 0 --no-pci --iova-mode=va --in-memory --vdev raw_rio0,wire=pair0 --vdev raw_rio1,wire=pair0"
  rio-testpmd $E -- --mode io --size 64 --seconds 5 --verify
  rio-testpmd $E -- --mode txonly --size 8,4096,2,MUL --seconds 1 --json sweep.json
  rio-testpmd $E -- --mode pingpong --size 8 --seconds 2
  rio-testpmd $E -- --mode dedicated --size 4K --offset 24 --count 1000 --verify
  rio-testpmd $E -- --mode io --faults 7:0.01 --count 7000 --verify
  rio-testpmd $E -- -i

Exit code
  0  done (and, with --verify, every byte was right)
  1  wrong option, or the set-up failed
  2  --verify found something lost, duplicated or corrupted
  3  the card is gone, or nothing moves any more
)";

}  // namespace

std::string help_text() {
  std::ostringstream out;
  out << "rio-testpmd EAL-OPTIONS -- OPTIONS\n\n"
         "Sends messages between RapidIO cards (rawdevs of driver raw_rio) and measures them.\n\n"
         "Options (the default in parentheses)\n";
  for (const OptionDef& option : option_table()) {
    std::string name = "--" + std::string(option.name);
    if (option.value != nullptr) {
      name += std::string(" ") + option.value;
    }
    out << "  " << apps::padded(name, 29) << ' ' << option.help << '\n';
  }
  out << kModes << kExamples;
  return out.str();
}

}  // namespace rio::testpmd
