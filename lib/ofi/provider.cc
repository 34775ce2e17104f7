#include "lib/ofi/provider.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/log.hpp"
#include "base/number.hpp"
#include "fpga/name/rails.hpp"

namespace rio::ofi {
namespace {

[[nodiscard]] std::string read_text(const char* name) {
  char* text = nullptr;
  return fi_param_get_str(&provider(), name, &text) == 0 && text != nullptr ? text : "";
}

}  // namespace

fi_provider& provider() {
  static fi_provider self = [] {
    fi_provider made{};
    made.version = kProviderVersion;
    made.fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);
    made.name = "rio";
    made.cleanup = [] {};
    return made;
  }();
  return self;
}

void define_params() {
  fi_provider* const self = &provider();
  fi_param_define(
      self, "card", FI_PARAM_STRING,
      "The card: a PCI address, or an emulated one: shm:NAME for processes of this "
      "machine, udp:NAME for those of several machines; all with the same NAME share a fabric "
      "(default: shm:FABRIC, with FI_RIO_FABRIC)");
  fi_param_define(self, "fabric", FI_PARAM_STRING,
                  "Name of the fabric of emulated cards between the processes of this machine "
                  "(default: ofi-UID, with the number of the user)");
  fi_param_define(self, "relay", FI_PARAM_STRING,
                  "NAME:BOARDS: the card is relay:NAME, on the board whose number is the rank's "
                  "(PMIX_RANK) modulo BOARDS");
  fi_param_define(self, "destid", FI_PARAM_STRING,
                  "destID of the card (default: 0, the one that it has or is given)");
  fi_param_define(self, "queue_pair", FI_PARAM_STRING,
                  "Queue pair of the card, for processes that share one (default: 0)");
  fi_param_define(self, "border", FI_PARAM_STRING,
                  "Bytes, such as 65536 or 64K: messages up to this size are copied, longer ones "
                  "go directly between the users' buffers (default: as rio-tune measured)");
  fi_param_define(self, "rma_border", FI_PARAM_STRING,
                  "Bytes, such as 65536 or 64K: reads and writes of peers' memory up to this size "
                  "go by the card's DMA queue and windows, longer ones by messages; 0: all by "
                  "messages (default: all by the card, but above 256K of emulated cards that "
                  "cannot read each other's memory)");
  fi_param_define(
      self, "barriers", FI_PARAM_STRING,
      "The carrier of barriers: memory (of the machine, if all members are on one), card "
      "(its barrier engine) or software; all members give the same (default: the "
      "first of them that all members have)");
}

int read_params(Params* out) {
  return job::read_settings(read_text, out);
}

}  // namespace rio::ofi
