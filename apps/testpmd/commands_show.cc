// show port info|stats|xstats|queues, clear port stats, show config.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <vector>

#include <rte_rawdev.h>

#include "apps/testpmd/console.hpp"
#include "apps/testpmd/report.hpp"
#include "apps/testpmd/text.hpp"
#include "pmd/dev/names.hpp"

namespace rio::testpmd {
namespace {

void print_port(const TestPort& port) {
  std::printf("port %u  %s\n", port.index, port.name.c_str());
}

void print_info(const TestPort& port) {
  const pmd::Caps& caps = port.card().caps();
  const pmd::LinkState link = port.card().link();
  std::printf("port %u  %s%s\n", port.index, port.name.c_str(),
              caps.is_model ? "  (emulated card: its figures are not a card's)" : "");
  std::printf("  bus          %s, NUMA node %d, wire %s\n", port.card().bus().name().c_str(),
              port.card().bus().numa_node(), port.wire.empty() ? "-" : port.wire.c_str());
  std::printf("  destID       0x%x, sends to 0x%x%s\n", port.dest_id(), port.peer_dest_id(),
              port.peer() == nullptr ? "" : formatted(" (port %u)", port.peer()->index).c_str());
  std::printf("  link         %s, %u of %u lanes, %u Mbaud each\n", link.up ? "up" : "down",
              link.lanes, link.lanes_max, link.lane_mbaud);
  std::printf("  queue pairs  %u, rings 2^%u to 2^%u entries, %u vectors\n", caps.queue_pairs,
              caps.ring_log2_min, caps.ring_log2_max, caps.vectors);
  std::printf("  messages     %u letters, order depth %u, %u inline bytes%s\n", caps.letters,
              caps.order_depth, caps.inline_bytes, caps.wide ? ", 64-byte descriptors" : "");
  std::printf("  alignment    send %u, shared %u, dedicated %u (sizes %u), DMA %u\n",
              caps.tx_addr_align, caps.shared_addr_align, caps.dedicated_addr_align,
              caps.dedicated_size_align, caps.dma_addr_align);
  std::printf("  quirks       last segment at 256*(n-1): %s, written as full 256 bytes: %s\n",
              caps.quirk_last_at_256 ? "yes" : "no", caps.quirk_last_full_256 ? "yes" : "no");
}

using Xstats = std::vector<std::pair<std::string, uint64_t>>;

/// All counters of the driver by name, since they were cleared.
Xstats xstats_of(const TestPort& port) {
  const std::lock_guard guard(port.queues_lock);
  const int count = rte_rawdev_xstats_names_get(port.dev_id, nullptr, 0);
  const auto n = static_cast<unsigned>(std::max(count, 0));
  std::vector<rte_rawdev_xstats_name> names(n);
  std::vector<unsigned> ids(n);
  std::vector<uint64_t> values(n);
  std::iota(ids.begin(), ids.end(), 0u);
  Xstats all;
  if (n != 0 && rte_rawdev_xstats_names_get(port.dev_id, names.data(), n) == count &&
      rte_rawdev_xstats_get(port.dev_id, ids.data(), values.data(), n) == count) {
    for (unsigned i = 0; i < n; ++i) {
      all.emplace_back(names[i].name, values[i]);
    }
  }
  return all;
}

void print_xstats(const TestPort& port) {
  print_port(port);
  for (const auto& [name, value] : xstats_of(port)) {
    std::printf("  %-40s %s\n", name.c_str(), grouped(value).c_str());
  }
}

void print_stats(const TestPort& port) {
  const Xstats all = xstats_of(port);
  // The sum over all rings, or those of one kind.
  const auto sum = [&all](std::string_view name) {
    uint64_t total = 0;
    for (const auto& [whole, value] : all) {
      total += whole.ends_with(name) ? value : 0;
    }
    return total;
  };
  print_port(port);
  std::printf("  driver  sent %s, failed %s; received %s, failed %s; rejected %s\n",
              grouped(sum("_tx_messages")).c_str(), grouped(sum("_tx_failed")).c_str(),
              grouped(sum("_shared_messages") + sum("_dedicated_messages")).c_str(),
              grouped(sum("_shared_failed") + sum("_dedicated_failed")).c_str(),
              grouped(sum("_rejected")).c_str());
  std::printf("  BAR     %s reads, %s writes by the bursts\n", grouped(sum("_bar_reads")).c_str(),
              grouped(sum("_bar_writes")).c_str());
  std::printf(
      "  link    packets out %lu, in %lu; RETRY in %lu, out %lu; ERROR out %lu; time-outs %lu, %lu;"
      " unmapped %lu\n",
      sum("port_tx_packets"), sum("port_rx_packets"), sum("port_tx_retries"),
      sum("port_rx_retries"), sum("port_rx_errors"), sum("port_tx_timeouts"),
      sum("port_rx_timeouts"), sum("port_rx_unmapped"));
}

void print_queue(uint32_t qp, uint32_t ring, pmd::QueueBase& queue) {
  regs::RingError why{};
  uint32_t entry = 0;
  const int state = queue.ring_state(&why, &entry);
  const pmd::QueueStats stats = queue.stats();
  std::printf("  %-3u %-11s %-9s %14s %16s %8s %8s %8s", qp, pmd::ring_name(ring),
              state < 0 ? "gone" : pmd::name(static_cast<regs::RingState>(state)),
              grouped(stats.messages).c_str(), grouped(stats.bytes).c_str(),
              grouped(stats.failed).c_str(), grouped(stats.rejected).c_str(),
              grouped(stats.bad_completions).c_str());
  if (why != regs::RingError::kNone && state >= 0) {
    std::printf("  error %s at entry %u: %s", pmd::name(why), entry, pmd::remedy(why));
  }
  std::printf("\n");
}

void print_queues(const TestPort& port) {
  const std::lock_guard guard(port.queues_lock);
  print_port(port);
  std::printf("  %-3s %-11s %-9s %14s %16s %8s %8s %8s\n", "qp", "ring", "state", "messages",
              "bytes", "failed", "rejected", "bad");
  for (uint32_t qp = 0; qp < port.queue_pairs(); ++qp) {
    pmd::QueuePair& pair = port.pair(qp);
    for_each_ring(pair, [qp](regs::Ring ring, pmd::QueueBase& queue) {
      print_queue(qp, static_cast<uint32_t>(ring), queue);
    });
    for (uint32_t i = 0; i < regs::kDedicatedQueues; ++i) {
      if (pair.dedicated(i) != nullptr) {
        print_queue(qp, static_cast<uint32_t>(regs::Ring::kDedicated0) + i, *pair.dedicated(i));
      }
    }
  }
}

template <void (*Print)(const TestPort&)>
int each_port(Console& console, Args args, std::string* error) {
  std::vector<TestPort*> ports;
  const int rc = ports_of(console, args, &ports, error);
  for (const TestPort* port : ports) {
    Print(*port);
  }
  return rc;
}

int clear(Console& console, Args args, std::string* error) {
  std::vector<TestPort*> ports;
  if (ports_of(console, args, &ports, error) != 0) {
    return -EINVAL;
  }
  for (const TestPort* port : ports) {
    const std::lock_guard guard(port->queues_lock);
    if (const int rc = rte_rawdev_xstats_reset(port->dev_id, nullptr, 0); rc != 0) {
      return fail(error,
                  "clear port stats: %s: %s; look whether the card is there (show port info all)",
                  port->name.c_str(), std::strerror(-rc));
    }
  }
  return 0;
}

/// How long a run goes on.
std::string limit(const Options& o) {
  if (o.count > 0) {
    return formatted("%lu messages a port", o.count);
  }
  return o.seconds > 0 ? formatted("%g s", o.seconds) : "until stop";
}

int config(Console& console, Args, std::string*) {
  const Options& o = console.session.options;
  std::printf("mode %s, size %s, offset %u, burst %u, %s, verify %s, %zu ports, %s\n",
              o.mode.c_str(), o.size_text.c_str(), o.offset_bytes, o.burst, limit(o).c_str(),
              o.verify ? "on" : "off", console.session.ports().size(),
              console.session.running() != nullptr ? "running" : "stopped");
  return 0;
}

constexpr Command kCommands[] = {
    {"show port info", "[PORT|all]", "card, link, capabilities", each_port<print_info>},
    {"show port stats", "[PORT|all]", "messages, BAR accesses, link counters",
     each_port<print_stats>},
    {"show port xstats", "[PORT|all]", "all counters of the driver by name",
     each_port<print_xstats>},
    {"show port queues", "[PORT|all]", "rings with their state", each_port<print_queues>},
    {"clear port stats", "[PORT|all]", "count from zero, in stats and xstats", clear},
    {"show config", "", "what start would begin", config},
};

}  // namespace

std::span<const Command> show_commands() {
  return kCommands;
}

}  // namespace rio::testpmd
