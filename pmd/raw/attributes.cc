#include <cmath>
#include <string_view>

#include "base/log.hpp"
#include "base/number.hpp"
#include "pmd/raw/ops.hpp"

namespace rio::pmd {
namespace {

constexpr double kPpm = 1e6;

/// "qp3.dest_id" → 3, "dest_id".
bool split_qp(std::string_view name, uint32_t* qp, std::string_view* rest) {
  if (!name.starts_with("qp")) {
    return false;
  }
  const size_t dot = name.find('.');
  if (dot == std::string_view::npos || !base::read_number(name.substr(2, dot - 2), qp)) {
    return false;
  }
  *rest = name.substr(dot + 1);
  return true;
}

/// "reg.0x1100" → 0x1100.
bool split_register(std::string_view name, uint32_t* offset) {
  return name.starts_with("reg.0x") && base::read_number(name.substr(4), offset);
}

int get_of_qp(RawDevice& device, uint32_t qp, std::string_view what, uint64_t* value) {
  if (qp >= device.queue_pairs()) {
    return -EINVAL;
  }
  if (what == "dest_id") {
    *value = device.card()->dest_id(qp);
    return 0;
  }
  if (what == "owner_pid") {
    *value = token_pid(device.eal_card().shared().owner(qp));
    return 0;
  }
  if (what != "last_reject" && what != "irq_fd") {
    return -ENOENT;
  }
  QueuePair* const pair = device.queue_pair(qp);
  if (pair == nullptr) {
    return -ENODEV;
  }
  if (what == "last_reject") {
    *value = static_cast<uint64_t>(pair->tx().last_reject());
    return 0;
  }
  const int fd = device.irq(qp).fd();
  if (fd < 0) {
    base::log_error(
        "%s: queue pair %u has no interrupts: set irq_rings of its rte_raw_rio_queue_conf",
        device.name().c_str(), qp);
    return -ENOTSUP;
  }
  *value = static_cast<uint64_t>(fd);
  return 0;
}

int set_of_qp(RawDevice& device, uint32_t qp, std::string_view what, uint64_t value) {
  if (what != "dest_id" && what != "arm") {
    return -ENOENT;
  }
  if (qp >= device.queue_pairs() || value > UINT32_MAX) {
    return -EINVAL;
  }
  if (what == "dest_id") {
    return device.eal_card().set_dest_id(qp, static_cast<uint32_t>(value));
  }
  QueuePair* const pair = device.queue_pair(qp);
  return pair == nullptr ? -ENODEV
                         : device.irq(qp).arm(*pair, device.name(), static_cast<uint32_t>(value));
}

int get_of_card(RawDevice& device, std::string_view what, uint64_t* value) {
  Card& card = *device.card();
  if (what == "queue_pairs") {
    *value = device.queue_pairs();
  } else if (what == "link_up") {
    *value = card.link().up ? 1 : 0;
  } else if (what == "gone") {
    *value = card.gone() ? 1 : 0;
  } else if (what == "heartbeat") {
    *value = device.bus().bar().read32(regs::id::heartbeat());
  } else if (what == "fault_seed") {
    *value = device.eal_card().args().emu.model.fault_seed;
  } else if (what == "fault_rate_ppm") {
    *value =
        static_cast<uint64_t>(std::llround(device.eal_card().args().emu.model.fault_rate * kPpm));
  } else {
    return -ENOENT;
  }
  return 0;
}

}  // namespace

int attribute_get(rte_rawdev* dev, const char* name, uint64_t* value) {
  return with_device(dev, [&](RawDevice& device) {
    if (name == nullptr || value == nullptr) {
      return -EINVAL;
    }
    if (device.card() == nullptr) {
      return -ENODEV;
    }
    device.eal_card().let_work();
    uint32_t number = 0;
    std::string_view rest;
    int rc = -ENOENT;
    if (split_register(name, &number)) {
      uint32_t word = 0;
      rc = device.card()->reg_read(number, &word);
      *value = rc == 0 ? word : *value;
      return rc;
    }
    rc = split_qp(name, &number, &rest) ? get_of_qp(device, number, rest, value)
                                        : get_of_card(device, name, value);
    if (rc == -ENOENT) {
      base::log_error(
          "%s: no attribute '%s': there are queue_pairs, link_up, gone, heartbeat, "
          "fault_seed, fault_rate_ppm, qpN.dest_id, qpN.owner_pid, qpN.last_reject, "
          "qpN.irq_fd, reg.0xOFFSET",
          device.name().c_str(), name);
    }
    return rc;
  });
}

int attribute_set(rte_rawdev* dev, const char* name, uint64_t value) {
  return with_device(dev, [&](RawDevice& device) {
    if (name == nullptr) {
      return -EINVAL;
    }
    if (device.card() == nullptr) {
      return -ENODEV;
    }
    uint32_t number = 0;
    std::string_view rest;
    const std::string_view what = name;
    if (split_register(what, &number)) {
      return value > UINT32_MAX ? -EINVAL
                                : device.card()->reg_write(number, static_cast<uint32_t>(value));
    }
    if (split_qp(what, &number, &rest)) {
      if (const int rc = set_of_qp(device, number, rest, value); rc != -ENOENT) {
        return rc;
      }
    }
    if (what == "fault_seed") {
      return device.eal_card().set_faults(value, device.eal_card().args().emu.model.fault_rate);
    }
    if (what == "fault_rate_ppm") {
      return device.eal_card().set_faults(device.eal_card().args().emu.model.fault_seed,
                                          static_cast<double>(value) / kPpm);
    }
    base::log_error(
        "%s: no attribute '%s' that can be set: there are fault_seed, fault_rate_ppm, "
        "qpN.dest_id, qpN.arm, reg.0xOFFSET",
        device.name().c_str(), name);
    return -ENOENT;
  });
}

}  // namespace rio::pmd
