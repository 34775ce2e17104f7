#include "pmd/card/card_args.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <set>
#include <string_view>

#include "base/log.hpp"
#include "fpga/regs/gen/rio_regs.hpp"
#include "pmd/bus/emu/wire_name.hpp"

namespace rio::pmd {
namespace {

bool to_u64(std::string_view text, uint64_t* out) {
  const bool hex = text.starts_with("0x") || text.starts_with("0X");
  if (hex) {
    text.remove_prefix(2);
  }
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, *out, hex ? 16 : 10);
  return !text.empty() && result.ec == std::errc{} && result.ptr == end;
}

template <typename Number>
bool number(std::string_view text, uint64_t first, uint64_t last, Number* out) {
  uint64_t value = 0;
  if (!read_number(text, first, last, &value)) {
    return false;
  }
  *out = static_cast<Number>(value);
  return true;
}

bool flag(std::string_view text, bool* out) {
  *out = text == "1";
  return text == "0" || text == "1";
}

bool ring(std::string_view text, uint32_t* log2) {
  uint64_t entries = 0;
  if (!read_number(text, 2, 65536, &entries) || !std::has_single_bit(entries)) {
    return false;
  }
  *log2 = static_cast<uint32_t>(std::countr_zero(entries));
  return true;
}

bool wire(std::string_view text, CardArgs* out) {
  constexpr std::string_view kShm = "shm:";
  constexpr std::string_view kUdp = "udp:";
  out->wire = text;
  if (text.starts_with(kShm)) {
    out->emu.fabric = text.substr(kShm.size());
    return is_fabric_name(out->emu.fabric);
  }
  if (text.starts_with(kUdp)) {
    out->emu.udp_fabric = text.substr(kUdp.size());
    return is_wire_name(out->emu.udp_fabric);
  }
  out->emu.wire = text;
  return is_wire_name(text);
}

bool not_empty(std::string_view text, std::string* out) {
  *out = text;
  return !text.empty();
}

bool stepping(std::string_view text, Stepping* out) {
  *out = text == "thread" ? Stepping::kThread : Stepping::kInline;
  return text == "thread" || text == "inline";
}

bool faults(std::string_view text, EmuConfig* out) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos || !to_u64(text.substr(0, colon), &out->fault_seed)) {
    return false;
  }
  const std::string_view rate = text.substr(colon + 1);
  const char* end = rate.data() + rate.size();
  const auto result = std::from_chars(rate.data(), end, out->fault_rate);
  return result.ec == std::errc{} && result.ptr == end && out->fault_rate >= 0.0 &&
         out->fault_rate <= 1.0;
}

struct Arg {
  std::string_view key;
  const char* allowed;
  bool emulated_only;
  bool (*parse)(std::string_view text, CardArgs* args);
};

constexpr const char* kRing = "2 to 65536 entries, a power of two";

constexpr Arg kArgs[] = {
    {"wire",
     "loop, or a name of 1 to 63 letters, digits, '_', '.', '-', alone, or after shm: (no '.' "
     "first) or udp:",
     true, [](std::string_view t, CardArgs* a) { return wire(t, a); }},
    {"members", "a file with lines DESTID HOST:PORT", true,
     [](std::string_view t, CardArgs* a) { return not_empty(t, &a->emu.members); }},
    {"bind", "an IP address of this machine, or the name of an interface", true,
     [](std::string_view t, CardArgs* a) { return not_empty(t, &a->emu.bind); }},
    {"port", "0 to 65535, 0 for any", true,
     [](std::string_view t, CardArgs* a) { return number(t, 0, UINT16_MAX, &a->emu.port); }},
    {"qps", "1 to 31", true,
     [](std::string_view t, CardArgs* a) {
       return number(t, 1, regs::kMaxQps, &a->emu.queue_pairs);
     }},
    {"stepping", "inline or thread", true,
     [](std::string_view t, CardArgs* a) { return stepping(t, &a->emu.stepping); }},
    {"exact", "0 or 1", true,
     [](std::string_view t, CardArgs* a) { return flag(t, &a->emu.exact); }},
    {"quirks", "0 or 1", true,
     [](std::string_view t, CardArgs* a) { return flag(t, &a->emu.quirks); }},
    {"faults", "SEED:RATE, a 64-bit number and 0.0 to 1.0", true,
     [](std::string_view t, CardArgs* a) { return faults(t, &a->emu); }},
    {"pcie", "a 64-bit seed, 0 for off", true,
     [](std::string_view t, CardArgs* a) { return to_u64(t, &a->emu.pcie_seed); }},
    {"destid", "0 to 65534", false,
     [](std::string_view t, CardArgs* a) {
       a->dest_id_given = true;
       return number(t, 0, 65534, &a->base_dest_id);
     }},
    {"tx_ring", kRing, false, [](std::string_view t, CardArgs* a) { return ring(t, &a->tx_log2); }},
    {"rx_ring", kRing, false,
     [](std::string_view t, CardArgs* a) { return ring(t, &a->shared_log2); }},
    {"dedicated_ring", kRing, false,
     [](std::string_view t, CardArgs* a) { return ring(t, &a->dedicated_log2); }},
    {"doorbell_ring", kRing, false,
     [](std::string_view t, CardArgs* a) { return ring(t, &a->doorbell_log2); }},
    {"dma_ring", kRing, false,
     [](std::string_view t, CardArgs* a) { return ring(t, &a->dma_log2); }},
    {"event_ring", kRing, false,
     [](std::string_view t, CardArgs* a) { return ring(t, &a->event_log2); }},
    {"response_timeout_us", "1 to 10000000", false,
     [](std::string_view t, CardArgs* a) {
       return number(t, 1, 10'000'000, &a->response_timeout_us);
     }},
    {"receive_timeout_us", "1 to 20000000, at most twice response_timeout_us", false,
     [](std::string_view t, CardArgs* a) {
       return number(t, 1, 20'000'000, &a->receive_timeout_us);
     }},
    {"retry_limit", "0 (never give up) to 1000000", false,
     [](std::string_view t, CardArgs* a) { return number(t, 0, 1'000'000, &a->retry_limit); }},
    {"retry_delay_us", "1 to 1000000", false,
     [](std::string_view t, CardArgs* a) { return number(t, 1, 1'000'000, &a->retry_delay_us); }},
};

const Arg* find(std::string_view key, bool emulated) {
  for (const Arg& arg : kArgs) {
    if (arg.key == key && (emulated || !arg.emulated_only)) {
      return &arg;
    }
  }
  return nullptr;
}

std::string keys(bool emulated, OwnKeys own) {
  std::string list;
  for (const std::string_view key : own) {
    list.append(list.empty() ? "" : ", ").append(key);
  }
  for (const Arg& arg : kArgs) {
    if (emulated || !arg.emulated_only) {
      list.append(list.empty() ? "" : ", ").append(arg.key);
    }
  }
  return list;
}

int parse_one(const std::string& device, std::string_view pair, bool emulated, OwnKeys own,
              std::set<std::string_view>* seen, CardArgs* args) {
  const size_t equals = pair.find('=');
  const std::string key(pair.substr(0, equals));
  const Arg* arg = find(key, emulated);
  if (arg == nullptr) {
    base::log_error("%s: no argument '%s' for %s card: take one of %s", device.c_str(), key.c_str(),
                    emulated ? "an emulated" : "a PCI", keys(emulated, own).c_str());
    return -EINVAL;
  }
  if (!seen->insert(arg->key).second) {
    base::log_error("%s: argument '%s' is given twice", device.c_str(), key.c_str());
    return -EINVAL;
  }
  const std::string value(equals == std::string_view::npos ? "" : pair.substr(equals + 1));
  if (equals == std::string_view::npos || !arg->parse(value, args)) {
    base::log_error("%s: bad value '%s' for argument '%s': allowed is %s", device.c_str(),
                    value.c_str(), key.c_str(), arg->allowed);
    return -EINVAL;
  }
  return 0;
}

/// What belongs together in a fabric of processes or machines, and the card's place there.
int set_place(const std::string& device, const std::set<std::string_view>& seen, CardArgs* args) {
  EmuConfig& emu = args->emu;
  for (const char* const key : {"members", "bind", "port"}) {
    if (emu.udp_fabric.empty() && seen.contains(key)) {
      base::log_error(
          "%s: argument '%s' is for a fabric of machines: give wire=udp:NAME, or leave it out",
          device.c_str(), key);
      return -EINVAL;
    }
  }
  if (seen.contains("members") && (seen.contains("bind") || seen.contains("port"))) {
    base::log_error("%s: a 'members' file says what to bind to: leave out 'bind' and 'port'",
                    device.c_str());
    return -EINVAL;
  }
  if (!emu.udp_fabric.empty() && seen.contains("members") != args->dest_id_given) {
    base::log_error(
        "%s: 'destid' and 'members' belong together: the file says where each destID is. Without "
        "both the card can only be found by its address",
        device.c_str());
    return -EINVAL;
  }
  const bool shm = !emu.fabric.empty();
  if ((shm || seen.contains("members")) && args->base_dest_id == 0) {
    base::log_error("%s: bad value '0' for argument 'destid': on wire %s allowed is 1 to %u",
                    device.c_str(), args->wire.c_str(), 65535 - emu.queue_pairs);
    return -EINVAL;
  }
  constexpr uint32_t kStep = 0x100;  // as default_dest_id() gives them
  emu.id = shm || seen.contains("members") ? args->base_dest_id : 0;
  emu.id_step = shm && !args->dest_id_given ? kStep : 0;
  return 0;
}

}  // namespace

int check_own(const std::string& device_name, std::string_view rest, OwnKeys own) {
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(pair.size() + 1, rest.size()));
    const std::string key(pair.substr(0, pair.find('=')));
    if (std::ranges::find(own, key) == own.end()) {
      continue;
    }
    const bool valued = key.size() < pair.size();
    base::log_error("%s: argument '%s' %s", device_name.c_str(), key.c_str(),
                    valued ? "is given twice" : "wants a value after '='");
    return -EINVAL;
  }
  return 0;
}

int parse_devargs(const std::string& device_name, const char* text, bool emulated, CardArgs* args,
                  OwnKeys own) {
  CardArgs result = *args;
  std::set<std::string_view> seen;
  std::string_view rest = text == nullptr ? "" : text;
  if (const int rc = check_own(device_name, rest, own); rc != 0) {
    return rc;
  }
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string_view pair = rest.substr(0, comma);
    rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
    if (const int rc =
            pair.empty() ? 0 : parse_one(device_name, pair, emulated, own, &seen, &result);
        rc != 0) {
      return rc;
    }
  }
  const uint32_t most_us = 2 * result.response_timeout_us;
  if (seen.contains("response_timeout_us") && !seen.contains("receive_timeout_us")) {
    result.receive_timeout_us = most_us;
  }
  if (result.receive_timeout_us > most_us) {
    base::log_error(
        "%s: bad value '%u' for argument 'receive_timeout_us': with response_timeout_us=%u "
        "allowed is 1 to %u",
        device_name.c_str(), result.receive_timeout_us, result.response_timeout_us, most_us);
    return -EINVAL;
  }
  if (emulated && result.base_dest_id + result.emu.queue_pairs > 65535) {
    base::log_error("%s: bad value '%u' for argument 'destid': with qps=%u allowed is 0 to %u",
                    device_name.c_str(), result.base_dest_id, result.emu.queue_pairs,
                    65535 - result.emu.queue_pairs);
    return -EINVAL;
  }
  if (const int rc = emulated ? set_place(device_name, seen, &result) : 0; rc != 0) {
    return rc;
  }
  *args = result;
  return 0;
}

bool read_number(std::string_view text, uint64_t first, uint64_t last, uint64_t* out) {
  return to_u64(text, out) && *out >= first && *out <= last;
}

bool take_arg(std::string* text, const std::string& key, std::string* value) {
  for (size_t at = 0; at < text->size();) {
    const size_t end = std::min(text->find(',', at), text->size());
    if (text->compare(at, key.size() + 1, key + "=") == 0) {
      *value = text->substr(at + key.size() + 1, end - at - key.size() - 1);
      text->erase(at, end - at + 1);
      if (text->ends_with(',')) {
        text->pop_back();  // it was the last: no comma is left behind those before it
      }
      return true;
    }
    at = end + 1;
  }
  return false;
}

std::string devargs_keys() {
  std::string list;
  for (const Arg& arg : kArgs) {
    list.append(list.empty() ? "" : " ").append(arg.key);
  }
  return list;
}

}  // namespace rio::pmd
