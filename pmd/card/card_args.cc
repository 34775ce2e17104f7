#include "pmd/card/card_args.hpp"

#include <rte_kvargs.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <iterator>
#include <memory>
#include <span>

#include "base/log.hpp"
#include "base/number.hpp"

namespace rio::pmd {
namespace {

constexpr uint32_t kDestIds = 65535;  // of 16 bits; the last is for broadcasts

[[nodiscard]] name::OwnKey ring(const char* key, uint32_t* log2) {
  return {key, "2 to 65536 entries, a power of two", [log2](std::string_view text) {
            uint64_t entries = 0;
            if (!base::read_number(text, 2, 65536, &entries) || !std::has_single_bit(entries)) {
              return false;
            }
            *log2 = static_cast<uint32_t>(std::countr_zero(entries));
            return true;
          }};
}

[[nodiscard]] name::OwnKey number(const char* key, const char* allowed, uint32_t least,
                                  uint32_t most, uint32_t* out) {
  return {key, allowed,
          [=](std::string_view text) { return base::read_number(text, least, most, out); }};
}

/// Choose the destIDs of the card. @param given whether there is an id=. @param members whether a
/// file lists the members of the fabric.
[[nodiscard]] int place_card(const std::string& device, bool given, bool members, CardArgs* args) {
  EmuConfig& emu = args->emu;
  const uint32_t most = kDestIds - emu.model.queue_pairs;
  const uint32_t id = given ? emu.id : args->base_dest_id;
  if (id > most) {
    base::log_error("%s: bad value '%u' for argument 'id': allowed is 0 to 65535 - qps, here %u",
                    device.c_str(), id, most);
    return -EINVAL;
  }
  args->base_dest_id = id;
  constexpr uint32_t kStep = 0x100;  // as default_dest_id() gives them
  const bool shm = std::holds_alternative<name::Shm>(emu.wire);
  const bool relay = std::holds_alternative<name::Relay>(emu.wire);
  emu.id = shm || members || (relay && given) ? id : 0;
  emu.id_step = shm && !given ? kStep : 0;
  return 0;
}

}  // namespace

OwnKeys card_keys(CardArgs* args) {
  CardConfig& card = args->card;
  OwnKeys keys = {
      number("response_timeout_us", "1 to 10000000", 1, 10'000'000, &card.response_timeout_us),
      number("receive_timeout_us", "1 to 20000000, at most twice response_timeout_us", 1,
             20'000'000, &card.receive_timeout_us),
      number("retry_limit", "0 (never give up) to 1000000", 0, 1'000'000, &card.retry_limit),
      number("retry_delay_us", "1 to 1000000", 1, 1'000'000, &card.retry_delay_us),
      number("vf_qps", "0 to 30", 0, regs::kMaxQps - 1, &card.vf_qps),
      {"push", "0 or 1",
       [args](std::string_view text) {
         args->queues.push = text == "1";
         return text == "0" || text == "1";
       }},
  };
  std::ranges::transform(kRingKeys, std::inserter(keys, keys.begin()), [&](const RingKey& one) {
    return ring(one.key, &(args->queues.*one.log2));
  });
  return keys;
}

int split_devargs(const std::string& device_name, const char* text,
                  std::vector<std::string>* pieces) {
  const std::unique_ptr<rte_kvargs, decltype(&rte_kvargs_free)> list(
      rte_kvargs_parse(text == nullptr ? "" : text, nullptr), rte_kvargs_free);
  if (list == nullptr) {
    base::log_error("%s: bad arguments '%s': give KEY=VALUE,KEY=VALUE, at most %u of them",
                    device_name.c_str(), base::printable(text).c_str(), RTE_KVARGS_MAX);
    return -EINVAL;
  }
  for (const rte_kvargs_pair& pair : std::span(list->pairs, list->count)) {
    pieces->push_back(std::string(pair.key) + (pair.value == nullptr ? "" : "=") +
                      (pair.value == nullptr ? "" : pair.value));
  }
  return 0;
}

int parse_devargs(const std::string& device_name, const char* text, name::Place place,
                  CardArgs* args, const OwnKeys& own) {
  CardArgs result = *args;
  OwnKeys keys = own;
  std::ranges::move(card_keys(&result), std::back_inserter(keys));
  std::vector<std::string> said;
  if (const int rc = split_devargs(device_name, text, &said); rc != 0) {
    return rc;
  }
  const std::vector<std::string_view> pieces(said.begin(), said.end());
  name::CardName card;
  std::string error;
  if (const int rc = name::parse(place, pieces, keys, &card, &error); rc != 0) {
    base::log_error("%s: %s", device_name.c_str(), error.c_str());
    return rc;
  }
  CardConfig& times = result.card;
  const uint32_t most_us = 2 * times.response_timeout_us;
  if (card.has("response_timeout_us") && !card.has("receive_timeout_us")) {
    times.receive_timeout_us = most_us;
  }
  if (times.receive_timeout_us > most_us) {
    base::log_error(
        "%s: bad value '%u' for argument 'receive_timeout_us': with response_timeout_us=%u "
        "allowed is 1 to %u",
        device_name.c_str(), times.receive_timeout_us, times.response_timeout_us, most_us);
    return -EINVAL;
  }
  if (emu_config(card, &result.emu)) {
    result.wire = name::wire_of(text == nullptr ? "" : text);
  } else {
    result.emu = {};
    result.emu.id = card.id;
  }
  if (const int rc = place_card(device_name, card.has("id"), card.has("members"), &result);
      rc != 0) {
    return rc;
  }
  result.given = std::move(card.given);
  *args = std::move(result);
  return 0;
}

}  // namespace rio::pmd
