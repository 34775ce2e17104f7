#include "lib/job/settings.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/log.hpp"
#include "base/number.hpp"
#include "fpga/name/rails.hpp"

namespace rio::job {
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

int read_settings(ReadText read_text, Settings* out) {
  Settings settings;
  settings.card = read_text("card");
  const std::string fabric = read_text("fabric");
  if (const std::string relay = read_text("relay"); !relay.empty()) {
    if (!settings.card.empty() || !fabric.empty()) {
      complain("FI_RIO_RELAY is set, and FI_RIO_CARD or FI_RIO_FABRIC; set one of them");
      return -EINVAL;
    }
    if (!card_of_relay(relay, &settings.card)) {
      return -EINVAL;
    }
  }
  if (settings.card.empty()) {
    settings.card = "shm:" + (fabric.empty() ? "ofi-" + std::to_string(getuid()) : fabric);
  } else if (!fabric.empty()) {
    complain("FI_RIO_CARD is %s and FI_RIO_FABRIC %s; set one of them", settings.card.c_str(),
             fabric.c_str());
    return -EINVAL;
  }
  if (!read_number("FI_RIO_DESTID", read_text("destid"), {.most = kDestIdMax}, &settings.dest_id) ||
      !read_number("FI_RIO_QUEUE_PAIR", read_text("queue_pair"), {.most = kQueuePairMax},
                   &settings.queue_pair) ||
      !read_number("FI_RIO_BORDER", read_text("border"), kSize, &settings.border) ||
      !read_number("FI_RIO_RMA_BORDER", read_text("rma_border"), kSize, &settings.rma_border)) {
    return -EINVAL;
  }
  if (const std::string text = read_text("barriers"); !read_way(text, &settings.barriers)) {
    complain("rio: FI_RIO_BARRIERS is '%s'; say memory, card or software", text.c_str());
    return -EINVAL;
  }
  *out = settings;
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

}  // namespace rio::job
