#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "lib/ofi/provider.hpp"
#include "pmd/bus/log.hpp"

namespace rio::ofi {
namespace {

constexpr int kDestIdMax = (1 << 24) - 1;
constexpr int kQueuePairMax = 63;
constexpr uint32_t kRelayBoardsMax = 64;

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

[[nodiscard]] bool number_of(std::string_view text, uint32_t* out) {
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, *out);
  return error == std::errc{} && at == end;
}

/// The card behind a relay of so many boards: ranks take the boards in turn.
[[nodiscard]] bool card_of_relay(std::string_view relay, std::string* out) {
  const size_t colon = relay.rfind(':');
  uint32_t boards = 0;
  if (colon == std::string_view::npos || !number_of(relay.substr(colon + 1), &boards) ||
      boards == 0 || boards > kRelayBoardsMax) {
    pmd::log_error("FI_RIO_RELAY is %s; it is NAME:BOARDS, with 1 to %u boards",
                   std::string(relay).c_str(), kRelayBoardsMax);
    return false;
  }
  uint32_t rank = 0;
  const char* const text = std::getenv("PMIX_RANK");
  if (text == nullptr || !number_of(text, &rank)) {
    pmd::log_error(
        "FI_RIO_RELAY is set, but PMIX_RANK is not: no launcher says which rank this is; set "
        "FI_RIO_CARD=relay:NAME,board=B instead");
    return false;
  }
  *out = "relay:" + std::string(relay.substr(0, colon)) + ",board=" + std::to_string(rank % boards);
  return true;
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
  fi_param_define(self, "relay", FI_PARAM_STRING,
                  "NAME:BOARDS: the card is relay:NAME, on the board whose number is the rank's "
                  "(PMIX_RANK) modulo BOARDS");
  fi_param_define(self, "destid", FI_PARAM_INT,
                  "destID of the card (default: 0, the one that it has or is given)");
  fi_param_define(self, "queue_pair", FI_PARAM_INT,
                  "Queue pair of the card, for processes that share one (default: 0)");
  fi_param_define(self, "border", FI_PARAM_SIZE_T,
                  "Bytes up to which messages are copied on their way; longer ones are moved where "
                  "they are (default: as rio-tune has measured it)");
  fi_param_define(self, "rma_border", FI_PARAM_SIZE_T,
                  "Bytes up to which reads and writes of the memory of peers go by the cards' DMA "
                  "queues and windows; longer ones go by messages, 0: all (default: %lu)",
                  kRmaBorder);
}

int read_params(Params* out) {
  Params params;
  params.card = read_text("card");
  const std::string fabric = read_text("fabric");
  if (const std::string relay = read_text("relay"); !relay.empty()) {
    if (!params.card.empty() || !fabric.empty()) {
      pmd::log_error("FI_RIO_RELAY is set, and FI_RIO_CARD or FI_RIO_FABRIC; set one of them");
      return -EINVAL;
    }
    if (!card_of_relay(relay, &params.card)) {
      return -EINVAL;
    }
  }
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
  if (fi_param_get_size_t(&provider(), "rma_border", &border) == 0) {
    params.rma_border = border;
  }
  *out = params;
  return 0;
}

}  // namespace rio::ofi
