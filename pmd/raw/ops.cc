// rawdev's functions, and those of raw_rio.hpp.
#include "pmd/raw/ops.hpp"

#include <cstring>

#include "base/log.hpp"
#include "pmd/raw/raw_rio.hpp"

namespace rio::pmd {
namespace {

bool right_size(const RawDevice& device, const char* what, size_t given, size_t wanted) {
  if (given != wanted) {
    base::log_error("%s: %s has %zu bytes, not %zu: compile with this driver's rte_raw_rio.h",
                    device.name().c_str(), what, given, wanted);
  }
  return given == wanted;
}

int info_get(rte_rawdev* dev, rte_rawdev_obj_t out, size_t size) {
  return with_device(dev, [&](RawDevice& device) {
    if (!right_size(device, "rte_raw_rio_info", size, sizeof(rte_raw_rio_info))) {
      return -EINVAL;
    }
    Card* const card = device.card();
    if (card == nullptr) {
      return -ENODEV;
    }
    device.eal_card().let_work();
    const Caps& caps = card->caps();
    const LinkState link = card->link();
    rte_raw_rio_info info{};
    info.queue_pairs = device.queue_pairs();
    info.ring_log2_min = caps.ring_log2_min;
    info.ring_log2_max = caps.ring_log2_max;
    info.vectors = caps.vectors;
    info.inline_bytes = caps.inline_bytes_max();
    info.tx_addr_align = caps.tx_addr_align;
    info.shared_addr_align = caps.shared_addr_align;
    info.dedicated_addr_align = caps.dedicated_addr_align;
    info.dedicated_size_align = caps.dedicated_size_align;
    info.dma_addr_align = caps.dma_addr_align;
    info.dma_bytes = caps.dma_bytes;
    info.tick_ns = caps.tick_ns;
    info.base_dest_id = card->dest_id(0);
    info.emulated = static_cast<uint8_t>(caps.is_model);
    info.link_up = link.up ? 1 : 0;
    info.lanes = static_cast<uint8_t>(link.lanes);
    info.lane_mbaud = link.lane_mbaud;
    info.barrier_rounds = caps.barrier_rounds;
    info.barrier_slots = caps.barrier_slots;
    std::memcpy(out, &info, sizeof(info));
    return 0;
  });
}

int configure(const rte_rawdev* dev, rte_rawdev_obj_t config, size_t size) {
  return with_device(dev, [&](RawDevice& device) {
    if (config == nullptr) {
      return 0;  // nothing to change
    }
    if (!right_size(device, "rte_raw_rio_config", size, sizeof(rte_raw_rio_config))) {
      return -EINVAL;
    }
    return device.configure(*static_cast<const rte_raw_rio_config*>(config));
  });
}

int start(rte_rawdev* dev) {
  return with_device(dev, [](RawDevice& device) { return device.start(); });
}

void stop(rte_rawdev* dev) {
  (void)with_device(dev, [](RawDevice& device) {
    device.stop();
    return 0;
  });
}

int reset(rte_rawdev* dev) {
  return with_device(dev, [](RawDevice& device) { return device.reset(); });
}

int close(rte_rawdev* dev) {
  const std::lock_guard guard(control_lock());
  delete device_of(dev);
  dev->dev_private = nullptr;  // closing twice is not an error
  return 0;
}

int queue_conf_get(rte_rawdev* dev, uint16_t queue, rte_rawdev_obj_t out, size_t size) {
  return with_device(dev, [&](RawDevice& device) {
    if (queue >= device.queue_pairs() ||
        !right_size(device, "rte_raw_rio_queue_conf", size, sizeof(rte_raw_rio_queue_conf))) {
      return -EINVAL;
    }
    const rte_raw_rio_queue_conf conf = device.queue_conf(queue);
    std::memcpy(out, &conf, sizeof(conf));
    return 0;
  });
}

int queue_setup(rte_rawdev* dev, uint16_t queue, rte_rawdev_obj_t conf, size_t size) {
  return with_device(dev, [&](RawDevice& device) {
    if (conf != nullptr &&
        !right_size(device, "rte_raw_rio_queue_conf", size, sizeof(rte_raw_rio_queue_conf))) {
      return -EINVAL;
    }
    return device.setup_queue(queue, static_cast<const rte_raw_rio_queue_conf*>(conf));
  });
}

int queue_release(rte_rawdev* dev, uint16_t queue) {
  return with_device(dev, [&](RawDevice& device) { return device.release_queue(queue); });
}

uint16_t queue_count(rte_rawdev* dev) {
  const int count =
      with_device(dev, [](RawDevice& device) { return static_cast<int>(device.queue_pairs()); });
  return count < 0 ? uint16_t{0} : static_cast<uint16_t>(count);
}

/// The card's hardware version as text: rte_rawdev_firmware_version_get with a char[32].
int firmware_version(rte_rawdev* dev, rte_rawdev_obj_t out) {
  return with_device(dev, [&](RawDevice& device) {
    Mmio bar = device.bus().bar();
    const uint32_t word = bar.read32(regs::id::hw_version());
    using Version = regs::id::HwVersion;
    std::snprintf(static_cast<char*>(out), 32, "%u.%u.%u%s", Version::major.get(word),
                  Version::minor.get(word), Version::patch.get(word),
                  Version::model.get(word) != 0 ? " emulated" : "");
    return 0;
  });
}

}  // namespace

constinit const rte_rawdev_ops kRawOps = [] {
  rte_rawdev_ops ops{};
  ops.dev_info_get = info_get;
  ops.dev_configure = configure;
  ops.dev_start = start;
  ops.dev_stop = stop;
  ops.dev_close = close;
  ops.dev_reset = reset;
  ops.queue_def_conf = queue_conf_get;
  ops.queue_setup = queue_setup;
  ops.queue_release = queue_release;
  ops.queue_count = queue_count;
  ops.enqueue_bufs = enqueue_buffers;
  ops.dequeue_bufs = dequeue_buffers;
  ops.dump = dump;
  ops.attr_get = attribute_get;
  ops.attr_set = attribute_set;
  ops.xstats_get = xstats_get;
  ops.xstats_get_names = xstats_names;
  ops.xstats_get_by_name = xstats_by_name;
  ops.xstats_reset = xstats_reset;
  ops.firmware_version_get = firmware_version;
  ops.dev_selftest = selftest;
  return ops;
}();

Card* raw_card(uint16_t dev_id) {
  return with_device<Card*>(dev_id, nullptr, [](RawDevice& device) { return device.card(); });
}

QueuePair* raw_queue_pair(uint16_t dev_id, uint32_t qp) {
  return with_device<QueuePair*>(dev_id, nullptr,
                                 [qp](RawDevice& device) { return device.queue_pair(qp); });
}

int raw_hold(uint16_t dev_id) {
  return with_device(dev_id, -ENODEV, [](RawDevice& device) {
    ++device.holders;
    return 0;
  });
}

void raw_let_go(uint16_t dev_id) {
  (void)with_device(dev_id, 0, [](RawDevice& device) {
    device.holders -= device.holders > 0 ? 1 : 0;
    return 0;
  });
}

int raw_set_faults(uint16_t dev_id, uint64_t seed, double rate) {
  return with_device(dev_id, -ENODEV,
                     [=](RawDevice& device) { return device.eal_card().set_faults(seed, rate); });
}

}  // namespace rio::pmd
