// show port info|stats|xstats|queues, clear port stats, show config.
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <vector>

#include <rte_rawdev.h>

#include "apps/testpmd/console.hpp"
#include "apps/testpmd/report.hpp"
#include "pmd/dev/names.hpp"

namespace rio::testpmd {
namespace {

void print_info(const TestPort& port) {
  const pmd::Caps& caps = port.card().caps();
  const pmd::LinkState link = port.card().link();
  std::printf("port %u  %s%s\n", port.index(), port.name().c_str(),
              caps.is_model ? "  (emulated card: its figures are not a card's)" : "");
  std::printf("  bus          %s, NUMA node %d, wire %s\n", port.card().bus().name().c_str(),
              port.card().bus().numa_node(), port.wire().empty() ? "-" : port.wire().c_str());
  std::printf("  destID       0x%x, sends to 0x%x%s\n", port.dest_id(), port.peer_dest_id(),
              port.peer() == nullptr
                  ? ""
                  : (" (port " + std::to_string(port.peer()->index()) + ")").c_str());
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

void print_stats(const TestPort& port) {
  const auto [d, c] = count_port(port);
  std::printf("port %u  %s\n", port.index(), port.name().c_str());
  std::printf("  driver  sent %s, failed %s; received %s, failed %s; rejected %s\n",
              grouped(d.tx_messages).c_str(), grouped(d.tx_failed).c_str(),
              grouped(d.rx_messages).c_str(), grouped(d.rx_failed).c_str(),
              grouped(d.rejected).c_str());
  std::printf("  BAR     %s reads, %s writes by the bursts\n", grouped(d.bar_reads).c_str(),
              grouped(d.bar_writes).c_str());
  std::printf(
      "  link    packets out %u, in %u; RETRY in %u, out %u; ERROR out %u; time-outs %u, %u;"
      " unmapped %u\n",
      c.tx_packets, c.rx_packets, c.tx_retries, c.rx_retries, c.rx_errors, c.tx_timeouts,
      c.rx_timeouts, c.rx_unmapped);
}

template <typename Queue>
void print_queue(uint32_t qp, uint32_t ring, Queue& queue) {
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
  std::printf("port %u  %s\n  %-3s %-11s %-9s %14s %16s %8s %8s %8s\n", port.index(),
              port.name().c_str(), "qp", "ring", "state", "messages", "bytes", "failed", "rejected",
              "bad");
  for (uint32_t qp = 0; qp < port.queue_pairs(); ++qp) {
    pmd::QueuePair& pair = port.pair(qp);
    const auto show = [&](regs::Ring ring, auto queue) {
      if ((pair.rings() & pmd::ring_bit(ring)) != 0) {
        print_queue(qp, static_cast<uint32_t>(ring), (pair.*queue)());
      }
    };
    show(regs::Ring::kTx, &pmd::QueuePair::tx);
    show(regs::Ring::kShared, &pmd::QueuePair::shared);
    show(regs::Ring::kDoorbell, &pmd::QueuePair::doorbells);
    show(regs::Ring::kDma, &pmd::QueuePair::dma);
    show(regs::Ring::kMaint, &pmd::QueuePair::maint);
    show(regs::Ring::kEvent, &pmd::QueuePair::events);
    for (uint32_t i = 0; i < regs::kDedicatedQueues; ++i) {
      if (pair.dedicated(i) != nullptr) {
        print_queue(qp, static_cast<uint32_t>(regs::Ring::kDedicated0) + i, *pair.dedicated(i));
      }
    }
  }
}

void print_xstats(const TestPort& port) {
  const std::lock_guard guard(port.queues_lock);
  const int count = rte_rawdev_xstats_names_get(port.dev_id(), nullptr, 0);
  if (count <= 0) {
    return;
  }
  const auto n = static_cast<unsigned>(count);
  std::vector<rte_rawdev_xstats_name> names(n);
  std::vector<unsigned> ids(n);
  std::vector<uint64_t> values(n);
  std::iota(ids.begin(), ids.end(), 0u);
  if (rte_rawdev_xstats_names_get(port.dev_id(), names.data(), n) != count ||
      rte_rawdev_xstats_get(port.dev_id(), ids.data(), values.data(), n) != count) {
    return;
  }
  std::printf("port %u  %s\n", port.index(), port.name().c_str());
  for (unsigned i = 0; i < n; ++i) {
    std::printf("  %-40s %s\n", names[i].name, grouped(values[i]).c_str());
  }
}

template <void (*Print)(const TestPort&)>
int each_port(Console& console, Args args, std::string* error) {
  return for_ports(console, args.empty() ? "all" : args[0], error, [](const TestPort& port) {
    Print(port);
    return 0;
  });
}

int clear(Console& console, Args args, std::string* error) {
  return for_ports(console, args.empty() ? "all" : args[0], error, [error](TestPort& port) {
    const int rc = clear_counts(port);
    if (rc != 0) {
      *error = "clear port stats: " + port.name() + ": " + std::strerror(-rc) +
               "; look whether the card is there (show port info all)";
    }
    return rc;
  });
}

/// How long a run goes on.
std::string limit(const Options& o) {
  if (o.count > 0) {
    return std::to_string(o.count) + " messages a port";
  }
  char text[32];
  std::snprintf(text, sizeof(text), "%g s", o.seconds);
  return o.seconds > 0 ? text : "until stop";
}

int config(Console& console, Args, std::string*) {
  const Options& o = console.session.options;
  std::printf("mode %s, size %s, offset %u, burst %u, %s, verify %s, %zu ports, %s\n",
              o.mode.c_str(), o.size_text.c_str(), o.offset_bytes, o.burst, limit(o).c_str(),
              o.verify ? "on" : "off", console.session.ports().size(),
              console.session.running() != nullptr ? "running" : "stopped");
  return 0;
}

std::vector<std::string> words(Console& console, size_t) {
  return port_names(console);
}

constexpr std::array kCommands = {
    Command{"show port info", "[PORT|all]", "card, link, capabilities", 0, 1, each_port<print_info>,
            words},
    Command{"show port stats", "[PORT|all]", "messages, BAR accesses, link counters", 0, 1,
            each_port<print_stats>, words},
    Command{"show port xstats", "[PORT|all]", "all counters of the driver by name", 0, 1,
            each_port<print_xstats>, words},
    Command{"show port queues", "[PORT|all]", "rings with their state", 0, 1,
            each_port<print_queues>, words},
    Command{"clear port stats", "[PORT|all]", "count from zero, in stats and xstats", 0, 1, clear,
            words},
    Command{"show config", "", "what start would begin", 0, 0, config, nullptr},
};

}  // namespace

std::span<const Command> show_commands() {
  return kCommands;
}

}  // namespace rio::testpmd
