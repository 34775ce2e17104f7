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

constexpr uint64_t kDestIdMax = (1 << 24) - 1;
constexpr uint64_t kQueuePairMax = 63;
constexpr uint32_t kRelayBoardsMax = 64;
/// Rule for sizes at which another way of moving bytes begins.
constexpr base::NumberRule kSize = {.is_bytes = true};

/// Log an error once, since libfabric asks for information several times in one fi_getinfo().
[[gnu::format(printf, 1, 2)]] void complain(const char* format, ...) {
  char line[512];
  va_list args;
  va_start(args, format);
  std::vsnprintf(line, sizeof(line), format, args);
  va_end(args);
  static std::mutex mutex;
  static std::string last;
  const std::scoped_lock lock(mutex);
  if (last != line) {
    last = line;
    base::log_error("%s", line);
  }
}

[[nodiscard]] std::string read_text(const char* name) {
  char* text = nullptr;
  return fi_param_get_str(&provider(), name, &text) == 0 && text != nullptr ? text : "";
}

/// Reads a number strictly: libfabric's fi_param_get_size_t() reads "64K" as 64 and "abc" as 0.
/// @param shown its name in the log. @return false: not a number that fits the rule; logged.
template <class Number>
[[nodiscard]] bool read_number(const char* shown, const std::string& text,
                               const base::NumberRule& rule, Number* out) {
  uint64_t value = *out;
  std::string error;
  if (base::read_setting(shown, text.c_str(), rule, &value, &error) != 0) {
    complain("%s, or unset it", error.c_str());
    return false;
  }
  *out = static_cast<Number>(value);
  return true;
}

/// The card of a relay with so many boards: ranks take the boards in turn.
[[nodiscard]] bool card_of_relay(std::string_view relay, std::string* out) {
  const size_t colon = relay.rfind(':');
  uint64_t boards = 0;
  if (colon == std::string_view::npos ||
      !base::read_number(relay.substr(colon + 1), 1, kRelayBoardsMax, &boards)) {
    complain("FI_RIO_RELAY is %s; it is NAME:BOARDS, with 1 to %u boards",
             base::printable(relay).c_str(), kRelayBoardsMax);
    return false;
  }
  const char* const text = std::getenv("PMIX_RANK");
  if (text == nullptr || *text == '\0') {
    complain(
        "FI_RIO_RELAY is set, but PMIX_RANK is not: no launcher says which rank this is; set "
        "FI_RIO_CARD=relay:NAME,board=B instead");
    return false;
  }
  uint64_t rank = 0;
  if (!read_number("PMIX_RANK", text, {.most = UINT32_MAX}, &rank)) {
    return false;
  }
  *out = "relay:" + std::string(relay.substr(0, colon)) + ",board=" + std::to_string(rank % boards);
  return true;
}

/// @return false: no such way.
[[nodiscard]] bool read_way(const std::string& text, barrier::Way* out) {
  static constexpr std::pair<std::string_view, barrier::Way> kWays[] = {
      {"", barrier::Way::kAny},
      {"memory", barrier::Way::kMemory},
      {"card", barrier::Way::kCard},
      {"software", barrier::Way::kSoftware}};
  const auto* const found =
      std::ranges::find(kWays, text, &std::pair<std::string_view, barrier::Way>::first);
  const bool is_one = found != std::end(kWays);
  *out = is_one ? found->second : *out;
  return is_one;
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
                  "messages (default: %lu)",
                  kRmaBorder);
  fi_param_define(
      self, "barriers", FI_PARAM_STRING,
      "The carrier of barriers: memory (of the machine, if all members are on one), card "
      "(its barrier engine) or software; all members give the same (default: the "
      "first of them that all members have)");
}

int read_params(Params* out) {
  Params params;
  params.card = read_text("card");
  const std::string fabric = read_text("fabric");
  if (const std::string relay = read_text("relay"); !relay.empty()) {
    if (!params.card.empty() || !fabric.empty()) {
      complain("FI_RIO_RELAY is set, and FI_RIO_CARD or FI_RIO_FABRIC; set one of them");
      return -EINVAL;
    }
    if (!card_of_relay(relay, &params.card)) {
      return -EINVAL;
    }
  }
  if (params.card.empty()) {
    params.card = "shm:" + (fabric.empty() ? "ofi-" + std::to_string(getuid()) : fabric);
  } else if (!fabric.empty()) {
    complain("FI_RIO_CARD is %s and FI_RIO_FABRIC %s; set one of them", params.card.c_str(),
             fabric.c_str());
    return -EINVAL;
  }
  if (!read_number("FI_RIO_DESTID", read_text("destid"), {.most = kDestIdMax}, &params.dest_id) ||
      !read_number("FI_RIO_QUEUE_PAIR", read_text("queue_pair"), {.most = kQueuePairMax},
                   &params.queue_pair) ||
      !read_number("FI_RIO_BORDER", read_text("border"), kSize, &params.border) ||
      !read_number("FI_RIO_RMA_BORDER", read_text("rma_border"), kSize, &params.rma_border)) {
    return -EINVAL;
  }
  if (const std::string text = read_text("barriers"); !read_way(text, &params.barriers)) {
    complain("rio: FI_RIO_BARRIERS is '%s'; say memory, card or software", text.c_str());
    return -EINVAL;
  }
  *out = params;
  return 0;
}

std::string fabric_of(const std::string& card) {
  std::vector<std::string> names;
  std::vector<name::CardName> cards;
  std::string ignored;  // opening the card tells it
  if (name::parse_cards(card, &names, &cards, &ignored) != 0) {
    return "rapidio";
  }
  // Peers may have other numbers of cards. A session begins by the first ones.
  const name::CardName& first = cards.front();
  return std::holds_alternative<name::Pci>(first.kind) ? "rapidio"
         : std::holds_alternative<name::Sim>(first.kind)
             ? "sim"
             : names.front().substr(0, names.front().find(','));
}

}  // namespace rio::ofi
