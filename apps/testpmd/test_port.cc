#include "apps/testpmd/test_port.hpp"

#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_rawdev.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "apps/testpmd/text.hpp"
#include "fpga/name/parse.hpp"
#include "pmd/raw/raw_rio.hpp"
#include "pmd/raw/rte_raw_rio.h"

namespace rio::testpmd {
namespace {

constexpr uint8_t kBarrierLog2 = 4;

/// The wire of an emulated card; "" for a PCI card.
std::string wire_of(const rte_device* device) {
  const rte_devargs* args = rte_dev_devargs(device);
  const bool is_emulated = std::string_view(rte_dev_name(device)).starts_with("raw_rio");
  return is_emulated ? name::wire_of(args == nullptr || args->args == nullptr ? "" : args->args)
                     : "";
}

}  // namespace

TestPort::TestPort(uint32_t number, uint16_t rawdev, const rte_device* device)
    : index(number), dev_id(rawdev), name(rte_dev_name(device)), wire(wire_of(device)) {}

int TestPort::open_all(bool barriers, std::vector<std::unique_ptr<TestPort>>* out,
                       std::string* error) {
  std::vector<std::unique_ptr<TestPort>> ports;
  uint32_t left = rte_rawdev_count();
  for (uint16_t rawdev = 0; left > 0 && rawdev < RTE_RAWDEV_MAX_DEVS; ++rawdev) {
    rte_rawdev_info device{};
    if (rte_rawdev_info_get(rawdev, &device, 0) != 0) {
      continue;
    }
    --left;
    if (device.driver_name == nullptr ||
        !std::string_view(device.driver_name).starts_with("raw_rio")) {
      continue;
    }
    const auto number = static_cast<uint32_t>(ports.size());
    ports.emplace_back(new TestPort(number, rawdev, device.device));
    if (ports.back()->open(barriers, error) != 0) {
      return -EINVAL;
    }
  }
  if (ports.empty()) {
    return fail(error,
                "no ports: no card was found; for two emulated ones give, before the --, "
                "--vdev raw_rio0,wire=pair0 --vdev raw_rio1,wire=pair0");
  }
  *out = std::move(ports);
  return 0;
}

int TestPort::set_up_queue(uint16_t queue_pair, bool barriers) const {
  rte_raw_rio_queue_conf conf{};
  if (const int rc = rte_rawdev_queue_conf_get(dev_id, queue_pair, &conf, sizeof(conf)); rc != 0) {
    return rc;
  }
  conf.barrier_log2 = barriers ? kBarrierLog2 : 0;
  return rte_rawdev_queue_setup(dev_id, queue_pair, &conf, sizeof(conf));
}

int TestPort::open(bool barriers, std::string* error) {
  const char* const own = name.c_str();
  rte_raw_rio_info info{};
  rte_rawdev_info device{};
  device.dev_private = &info;
  if (const int rc = rte_rawdev_info_get(dev_id, &device, sizeof(info)); rc != 0) {
    return fail(error, "%s: no information (%s); see the log above", own, std::strerror(-rc));
  }
  if (const int rc = pmd::raw_hold(dev_id); rc != 0) {  // pollers would not notice an unplugging
    return fail(error, "%s: is being unplugged (%s); start without it, or when it is back", own,
                std::strerror(-rc));
  }
  held_ = true;
  for (uint32_t qp = 0; qp < info.queue_pairs; ++qp) {
    const auto number = static_cast<uint16_t>(qp);
    if (const int rc = set_up_queue(number, barriers && info.barrier_rounds != 0); rc != 0) {
      return fail(error, "%s: queue pair %u cannot be set up (%s); is another process using it?",
                  own, qp, std::strerror(-rc));
    }
  }
  if (const int rc = rte_rawdev_start(dev_id); rc != 0) {
    return fail(error, "%s: cannot be started (%s); see the log above", own, std::strerror(-rc));
  }
  started_ = true;
  card_ = pmd::raw_card(dev_id);
  for (uint32_t qp = 0; qp < info.queue_pairs; ++qp) {
    pmd::QueuePair* const pair = pmd::raw_queue_pair(dev_id, qp);
    if (card_ == nullptr || pair == nullptr) {
      return fail(error, "%s: queue pair %u is not there after start", own, qp);
    }
    pairs_.push_back(pair);
    dest_ids_.push_back(pair->dest_id());
  }
  barrier_epochs.assign(pairs_.size(), 0);
  return 0;
}

int TestPort::connect(std::vector<std::unique_ptr<TestPort>>& ports, const Options& options,
                      std::string* error) {
  if (!options.peers.empty() && options.peers.size() != ports.size()) {
    return fail(error, "--peers names %s for %s; give one for each",
                counted(options.peers.size(), "destID", "destIDs").c_str(),
                counted(ports.size(), "port", "ports").c_str());
  }
  const bool by_name = !options.peers.empty();
  for (const auto& port : ports) {
    port->peer_ = nullptr;
    for (const auto& other : ports) {
      // The cable of a real card is unknown: it reaches the port that --peers names, by a loop
      // itself.
      const bool cabled = by_name && port->wire.empty() && other->wire.empty();
      const bool wired =
          cabled || (port->wire == "loop"
                         ? other == port
                         : other != port && other->wire == port->wire && !port->wire.empty());
      const bool meant =
          !by_name || std::ranges::count(other->dest_ids_, options.peers[port->index]) != 0;
      if (wired && meant) {
        port->peer_ = other.get();
      }
    }
    // Real cards have no wire name: two of them are taken to be cabled to each other.
    if (port->wire.empty() && !by_name && ports.size() == 2) {
      port->peer_ = ports[port->index ^ 1u].get();
    }
    // An emulated card reaches those of its wire, and these are all in this process.
    if (port->peer_ == nullptr && (!by_name || !port->wire.empty())) {
      return port->fail_alone(ports, options, error);
    }
    port->peer_dest_id_ = by_name ? options.peers[port->index] : port->peer_->dest_ids_[0];
  }
  return 0;
}

/// Explain why the port has no peer to send to, with the remedy.
int TestPort::fail_alone(const std::vector<std::unique_ptr<TestPort>>& ports,
                         const Options& options, std::string* error) const {
  if (wire.empty()) {
    return fail(error,
                "port %u (%s) is a card whose cable is unknown; say by --peers which destID each "
                "port sends to",
                index, name.c_str());
  }
  std::string reached;
  for (const auto& other : ports) {
    if (other->wire == wire && ((other.get() == this) == (wire == "loop"))) {
      for (const uint32_t id : other->dest_ids_) {
        reached += formatted("%s0x%x", reached.empty() ? "" : ", ", id);
      }
    }
  }
  if (reached.empty()) {
    return fail(error,
                "port %u (%s) has no partner: no other port has wire %s; add one (--vdev "
                "raw_rio1,wire=%s)",
                index, name.c_str(), wire.c_str(), wire.c_str());
  }
  return fail(error, "--peers: port %u (%s) cannot reach destID 0x%x: on wire %s there is %s",
              index, name.c_str(), options.peers[index], wire.c_str(), reached.c_str());
}

int TestPort::fill_shared(MessagePool& pool, std::string* error) {
  for (; shared_posted < kSharedBuffers; ++shared_posted) {
    const uint64_t buffer = pool.take();
    const pmd::RxBuffer rx{.iova = buffer, .cookie = buffer};
    if (buffer == 0 || pair().shared().post(&rx, 1) != 1) {
      if (buffer != 0) {
        pool.give(buffer);
      }
      if (shared_posted >= kSharedBuffers / 4) {
        return 0;  // a smaller ring: enough to run
      }
      return fail(error,
                  "%s: its shared receive queue takes only %u buffers; give it a larger ring "
                  "(--vdev …,rx_ring=512)",
                  name.c_str(), shared_posted);
    }
  }
  return 0;
}

int TestPort::set_faults(const Options& options) {
  return pmd::raw_set_faults(dev_id, options.fault_seed + index, options.fault_rate);
}

void TestPort::add_counts(DriverCounts* sum) const {
  const std::lock_guard guard(queues_lock);
  pmd::RingTotals sent;
  pmd::RingTotals received;
  pmd::RingTotals all;
  for (pmd::QueuePair* const pair : pairs_) {
    for_each_ring(*pair, [&](regs::Ring ring, pmd::QueueBase& queue) {
      (ring == regs::Ring::kTx       ? sent
       : ring == regs::Ring::kShared ? received
                                     : all) += queue.totals();
    });
    for (uint32_t queue = 0; queue < regs::kDedicatedQueues; ++queue) {
      received += pair->dedicated_totals(queue);
    }
  }
  all += sent;
  all += received;
  sum->bar_reads += all.mmio.reads;
  sum->bar_writes += all.mmio.writes;
  sum->tx_messages += sent.stats.messages;
  sum->tx_failed += sent.stats.failed;
  sum->rx_messages += received.stats.messages;
  sum->rx_failed += received.stats.failed;
  sum->rejected += all.stats.rejected;
  sum->bad_completions += all.stats.bad_completions;
}

TestPort::~TestPort() {
  if (started_) {
    rte_rawdev_stop(dev_id);
  }
  if (held_) {
    pmd::raw_let_go(dev_id);
  }
}

}  // namespace rio::testpmd
