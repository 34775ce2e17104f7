#include <unistd.h>

#include <cerrno>

#include "lib/ofi/provider.hpp"
#include "pmd/bus/log.hpp"

namespace rio::ofi {
namespace {

constexpr int kDestIdMax = (1 << 24) - 1;
constexpr int kQueuePairMax = 63;

/// @return false: it is set, and out of range; logged.
[[nodiscard]] bool read_number(const char* name, const char* shown, int max, uint32_t* out) {
  int value = 0;
  if (fi_param_get_int(&provider(), name, &value) != 0) {
    return true;
  }
  if (value < 0 || value > max) {
    pmd::log_error("FI_RIO_%s is %d; it is a number from 0 to %d", shown, value, max);
    return false;
  }
  *out = static_cast<uint32_t>(value);
  return true;
}

[[nodiscard]] std::string read_text(const char* name) {
  char* text = nullptr;
  return fi_param_get_str(&provider(), name, &text) == 0 && text != nullptr ? text : "";
}

}  // namespace

void define_params() {
  fi_provider* const self = &provider();
  fi_param_define(
      self, "card", FI_PARAM_STRING,
      "The card: a PCI address, or an emulated one such as shm:NAME, which all "
      "processes of this machine with the same NAME share a fabric by, or udp:NAME, which "
      "those of several machines do (default: "
      "shm:FABRIC, with FI_RIO_FABRIC)");
  fi_param_define(self, "fabric", FI_PARAM_STRING,
                  "Name of the fabric of emulated cards between the processes of this machine "
                  "(default: ofi-UID, with the number of the user)");
  fi_param_define(self, "destid", FI_PARAM_INT,
                  "destID of the card (default: 0, the one that it has or is given)");
  fi_param_define(self, "queue_pair", FI_PARAM_INT,
                  "Queue pair of the card, for processes that share one (default: 0)");
  fi_param_define(self, "border", FI_PARAM_SIZE_T,
                  "Bytes up to which messages are copied on their way; longer ones are moved where "
                  "they are (default: as rio-tune has measured it)");
}

int read_params(Params* out) {
  Params params;
  params.card = read_text("card");
  const std::string fabric = read_text("fabric");
  if (params.card.empty()) {
    params.card = "shm:" + (fabric.empty() ? "ofi-" + std::to_string(getuid()) : fabric);
  } else if (!fabric.empty()) {
    pmd::log_error("FI_RIO_CARD is %s and FI_RIO_FABRIC %s; set one of them", params.card.c_str(),
                   fabric.c_str());
    return -EINVAL;
  }
  if (!read_number("destid", "DESTID", kDestIdMax, &params.dest_id) ||
      !read_number("queue_pair", "QUEUE_PAIR", kQueuePairMax, &params.queue_pair)) {
    return -EINVAL;
  }
  size_t border = 0;
  if (fi_param_get_size_t(&provider(), "border", &border) == 0) {
    params.border = border;
  }
  *out = params;
  return 0;
}

}  // namespace rio::ofi
