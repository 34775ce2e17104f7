// /raw_rio/list, /raw_rio/info,ID, /raw_rio/queues,ID, /raw_rio/queue,ID,QP, /raw_rio/regs,ID

#include <rte_common.h>
#include <rte_telemetry.h>
#include <rte_version.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "base/number.hpp"
#include "pmd/dev/names.hpp"
#include "pmd/raw/ops.hpp"

namespace rio::pmd {
namespace {

void add_number(rte_tel_data* dict, const char* name, uint64_t value) {
#if RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0)
  rte_tel_data_add_dict_uint(dict, name, value);
#else
  rte_tel_data_add_dict_u64(dict, name, value);
#endif
}

/// Finds the device that a command's parameter names. @return null: no such device.
RawDevice* device_of_params(const char* params) {
  uint16_t id = 0;
  return params != nullptr && base::read_number(params, &id) ? find_device(id) : nullptr;
}

int list(const char* /*command*/, const char* /*params*/, rte_tel_data* data) {
  const std::lock_guard guard(control_lock());
  rte_tel_data_start_array(data, RTE_TEL_INT_VAL);
  for (uint16_t id = 0; id < RTE_RAWDEV_MAX_DEVS; ++id) {
    if (find_device(id) != nullptr) {
      rte_tel_data_add_array_int(data, id);
    }
  }
  return 0;
}

int info(const char* /*command*/, const char* params, rte_tel_data* data) {
  const std::lock_guard guard(control_lock());
  RawDevice* const device = device_of_params(params);
  if (device == nullptr || device->card() == nullptr) {
    return -ENODEV;
  }
  device->eal_card().let_work();
  Card& card = *device->card();
  const LinkState link = card.link();
  rte_tel_data_start_dict(data);
  rte_tel_data_add_dict_string(data, "name", device->name().c_str());
  rte_tel_data_add_dict_string(data, "bus", device->bus().name().c_str());
  rte_tel_data_add_dict_string(data, "process",
                               device->eal_card().is_primary() ? "primary" : "secondary");
  rte_tel_data_add_dict_string(data, "wire", device->eal_card().wire().c_str());
  add_number(data, "queue_pairs", device->queue_pairs());
  add_number(data, "dest_id", card.dest_id(0));
  add_number(data, "emulated", static_cast<uint64_t>(card.caps().is_model));
  add_number(data, "gone", card.gone() ? 1 : 0);
  add_number(data, "started", device->started() ? 1 : 0);
  add_number(data, "link_up", link.up ? 1 : 0);
  add_number(data, "lanes", link.lanes);
  add_number(data, "lane_mbaud", link.lane_mbaud);
  return 0;
}

/// Adds one queue pair: its owner, the state of its rings, and this process's counts.
void add_queue(RawDevice& device, uint32_t qp, rte_tel_data* data) {
  rte_tel_data* const dict = rte_tel_data_alloc();
  if (dict == nullptr) {
    return;
  }
  rte_tel_data_start_dict(dict);
  add_number(dict, "owner_pid", token_pid(device.eal_card().shared().owner(qp)));
  add_number(dict, "dest_id", device.card()->dest_id(qp));
  Mmio bar = device.bus().bar();
  for (uint32_t ring = 0; ring < regs::kRingsPerQp; ++ring) {
    const uint32_t status = bar.read32(regs::qp::ring_status(qp, ring));
    const auto state = static_cast<regs::RingState>(regs::qp::RingStatus::state.get(status));
    if (state != regs::RingState::kStopped) {
      rte_tel_data_add_dict_string(dict, ring_name(ring), name(state));
    }
  }
  const QueueTotals totals = device.totals(qp);
  for (size_t i = 0; i < kCountedRings.size(); ++i) {
    const std::string ring = kCountedRings[i];
    add_number(dict, (ring + "_messages").c_str(), totals[i].stats.messages);
    add_number(dict, (ring + "_failed").c_str(), totals[i].stats.failed);
  }
  rte_tel_data_add_dict_container(data, ("qp" + std::to_string(qp)).c_str(), dict, 0);
}

int queues(const char* /*command*/, const char* params, rte_tel_data* data) {
  const std::lock_guard guard(control_lock());
  RawDevice* const device = device_of_params(params);
  if (device == nullptr || device->card() == nullptr) {
    return -ENODEV;
  }
  rte_tel_data_start_dict(data);
  for (uint32_t qp = 0; qp < device->queue_pairs(); ++qp) {
    add_queue(*device, qp, data);
  }
  return 0;
}

/// Gets the size of one of kCountedRings, and its outstanding entries as far as another thread than
/// the polling one can tell, if it has entries and is open in this process. Descriptors of 64 bytes
/// count twice, barriers that run in slots once.
void ring_fill(RawDevice& device, uint32_t qp, std::string_view name, uint32_t* entries,
               uint32_t* fill) {
  QueuePair* const pair = device.queue_pair(qp);
  if (pair == nullptr) {
    return;
  }
  Mmio bar = device.bus().bar();
  const auto add = [&](regs::Ring first, uint32_t number, const QueueStats& done,
                       uint64_t started = 0) {
    const uint32_t ring = static_cast<uint32_t>(first) + number;
    const uint32_t size =
        1u << regs::qp::RingSize::log2.get(bar.read32(regs::qp::ring_size(qp, ring)));
    const uint32_t posted =
        bar.read32(regs::qp::tail(qp, ring)) - bar.read32(regs::qp::ring_start(qp, ring));
    const auto left =
        static_cast<int32_t>(posted - static_cast<uint32_t>(done.messages + done.failed - started));
    *entries += size;
    *fill += std::min(static_cast<uint32_t>(std::max(left, 0)), size);
  };
  if (name == "tx") {
    add(regs::Ring::kTx, 0, pair->tx().stats());
  } else if (name == "shared") {
    add(regs::Ring::kShared, 0, pair->shared().stats());
  } else if (name == "barrier" && (pair->rings() & ring_bit(regs::Ring::kBarrier)) != 0) {
    add(regs::Ring::kBarrier, 0, pair->barriers().stats(), pair->barriers().slots_started());
  } else if (name == "dma" && (pair->rings() & ring_bit(regs::Ring::kDma)) != 0) {
    add(regs::Ring::kDma, 0, pair->dma().stats());
  }
  for (uint32_t i = 0; name == "dedicated" && i < regs::kDedicatedQueues; ++i) {
    if (const DedicatedRxQueue* queue = pair->dedicated(i); queue != nullptr) {
      add(regs::Ring::kDedicated0, i, queue->stats());
    }
  }
}

/// Parses "3,1": device and queue pair. @return null: no such device.
RawDevice* device_of_pair(const char* params, uint32_t* qp) {
  const char* const comma = params == nullptr ? nullptr : std::strchr(params, ',');
  if (comma == nullptr) {
    return nullptr;
  }
  RawDevice* const device = device_of_params(std::string(params, comma).c_str());
  const bool good = base::read_number(comma + 1, qp) && device != nullptr &&
                    device->card() != nullptr && *qp < device->queue_pairs();
  return good ? device : nullptr;
}

int queue(const char* /*command*/, const char* params, rte_tel_data* data) {
  const std::lock_guard guard(control_lock());
  uint32_t qp = 0;
  RawDevice* const device = device_of_pair(params, &qp);
  if (device == nullptr) {
    return -ENODEV;
  }
  rte_tel_data_start_dict(data);
  add_number(data, "queue_pair", qp);
  add_number(data, "owner_pid", token_pid(device->eal_card().shared().owner(qp)));
  add_number(data, "dest_id", device->card()->dest_id(qp));
  const QueueTotals totals = device->totals(qp);
  for (size_t i = 0; i < kCountedRings.size(); ++i) {
    const std::string ring = kCountedRings[i];
    uint32_t entries = 0;
    uint32_t fill = 0;
    ring_fill(*device, qp, ring, &entries, &fill);
    const QueueStats& stats = totals[i].stats;
    if (ring == "barrier" && entries + stats.messages + stats.failed + stats.rejected == 0) {
      continue;  // never opened: programs without barriers have no word of it
    }
    add_number(data, (ring + "_messages").c_str(), stats.messages);
    add_number(data, (ring + "_bytes").c_str(), stats.bytes);
    add_number(data, (ring + "_failed").c_str(), stats.failed);
    add_number(data, (ring + "_rejected").c_str(), stats.rejected);
    add_number(data, (ring + "_entries").c_str(), entries);
    add_number(data, (ring + "_fill").c_str(), fill);
  }
  if (device->card()->blocks().has_barrier(qp)) {
    const BarrierCounters counters = device->card()->barrier_counters(qp);
    for (const auto& [name, value] : kBarrierCounterNames) {
      add_number(data, (std::string("notices_") + name).c_str(), counters.*value);
    }
  }
  return 0;
}

int registers(const char* /*command*/, const char* params, rte_tel_data* data) {
  const std::lock_guard guard(control_lock());
  RawDevice* const device = device_of_params(params);
  if (device == nullptr) {
    return -ENODEV;
  }
  Mmio bar = device->bus().bar();
  rte_tel_data_start_dict(data);
  for (const char* const block : {"id", "port"}) {
    each_word(block, [&](const regs::names::RegName& reg) {
      const std::string_view name = reg.name;
      if (name != "build" && (!reg.host || name == "gen_req")) {  // settings are left out
        add_number(data, in_capitals(reg, '/').c_str(), bar.read32(reg.offset));
      }
    });
  }
  return 0;
}

}  // namespace

RTE_INIT(raw_rio_telemetry_init) {
  rte_telemetry_register_cmd("/raw_rio/list", list,
                             "Numbers of the RapidIO raw devices. Takes no parameters");
  rte_telemetry_register_cmd("/raw_rio/info", info,
                             "Identity and link of a card. Parameters: int dev_id");
  rte_telemetry_register_cmd("/raw_rio/queues", queues,
                             "Owner, rings and counts of the queue pairs. Parameters: int dev_id");
  rte_telemetry_register_cmd("/raw_rio/queue", queue,
                             "Counts and fill of one queue pair. Parameters: int dev_id, int qp");
  rte_telemetry_register_cmd("/raw_rio/regs", registers,
                             "Registers of a card. Parameters: int dev_id");
}

}  // namespace rio::pmd
