// Events a second of CPU time of the simulator, on one core.
//   sim_events calendar IN_FLIGHT MEAN_NS [MILLIONS]   the hold model: each event that is taken
//   pushes
//                                                   one, MEAN_NS later on average, uniform
//   sim_events network TOPOLOGY EACH [MILLIONS]     EACH packets of each node travel to random
//                                                   nodes; a packet that arrives goes on
// MILLIONS of events, or of hops, are measured: 50. Prints one JSON object.
#include <time.h>

#include <array>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "base/number.hpp"
#include "base/random.hpp"
#include "fpga/sim/event_calendar.hpp"
#include "fpga/sim/network.hpp"
#include "fpga/sim/topology.hpp"

namespace {

using rio::sim::Network;
using rio::sim::NetworkBase;
using rio::sim::NetworkTopology;
using rio::sim::Packet;

/// CPU time of this process: other programs on the core do not count.
double cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double mebibytes(size_t bytes) {
  return static_cast<double>(bytes) / (1 << 20);
}

/// As large as the event of a network.
struct HoldEvent {
  std::array<uint32_t, 5> words;
};

void run_calendar(uint32_t in_flight, uint32_t mean_ns, uint64_t events) {
  const auto calendar = std::make_unique<rio::sim::EventCalendar<HoldEvent>>();
  rio::base::Random random(1);
  for (uint32_t i = 0; i < in_flight; ++i) {
    calendar->push(random.below(2 * mean_ns), HoldEvent{{i}});
  }
  std::array<HoldEvent, 16> burst;
  uint64_t sum = 0;
  const double start = cpu_seconds();
  for (uint64_t done = 0; done < events;) {
    const size_t count = calendar->pop(UINT64_MAX, burst);
    for (size_t i = 0; i < count; ++i) {
      sum = sum * 31 + burst[i].words[0];
      calendar->push(calendar->now() + 1 + random.below(2 * mean_ns - 1), burst[i]);
    }
    done += count;
  }
  const double seconds = cpu_seconds() - start;
  std::printf("{\"case\": \"calendar\", \"in_flight\": %u, \"mean_ns\": %u, \"events\": %" PRIu64
              ", \"events_per_us\": %.1f, \"bytes_per_event\": %.1f, \"end_ns\": %" PRIu64
              ", \"checksum\": \"%016" PRIx64 "\"}\n",
              in_flight, mean_ns, events, static_cast<double>(events) / seconds * 1e-6,
              static_cast<double>(calendar->bytes()) / in_flight, calendar->now(), sum);
}

/// Sends each packet that arrives on to a random node.
struct Forwarder {
  rio::base::Random random{1};
  uint32_t nodes = 0;

  void deliver(NetworkBase& network, const Packet& packet) {
    Packet next = packet;
    next.source = packet.destination;
    next.destination = random.below(nodes);
    network.send(next);
  }
  void expire(NetworkBase& /*network*/, const rio::sim::NodeTimer& /*timer*/) {}
};

int run_network(const char* text, uint32_t each, uint64_t hops) {
  NetworkTopology topology;
  std::string error;
  Forwarder forwarder;
  std::unique_ptr<Network<Forwarder>> network;
  int rc = NetworkTopology::create(text, &topology, &error);
  forwarder.nodes = topology.nodes();
  if (rc == 0) {
    rc = Network<Forwarder>::create(std::move(topology), {}, forwarder, &network, &error);
  }
  if (rc != 0) {
    std::fprintf(stderr, "error: %s\n", error.c_str());
    return 1;
  }
  for (uint32_t i = 0; i < each; ++i) {
    for (uint32_t node = 0; node < forwarder.nodes; ++node) {
      network->send({.source = node, .destination = forwarder.random.below(forwarder.nodes)});
    }
  }
  const uint64_t before = network->counters().hops;
  const double start = cpu_seconds();
  for (uint64_t until_ns = 100; network->counters().hops - before < hops; until_ns += 100) {
    network->run(until_ns);
  }
  const double seconds = cpu_seconds() - start;
  const rio::sim::NetworkCounters& counters = network->counters();
  std::printf("{\"case\": \"network\", \"topology\": \"%s\", \"in_flight\": %" PRIu64
              ", \"hops\": %" PRIu64 ", \"hops_per_us\": %.1f, \"delivered\": %" PRIu64
              ", \"end_ns\": %" PRIu64 ", \"longest_wait_ns\": %u, \"mebibytes\": %.0f}\n",
              text, network->events(), counters.hops - before,
              static_cast<double>(counters.hops - before) / seconds * 1e-6, counters.delivered,
              network->now(), network->links().longest_wait_ns(network->links().busiest()),
              mebibytes(network->bytes()));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view which = argc > 1 ? argv[1] : "";
  uint32_t third = 0;
  uint64_t millions = 50;
  if ((which != "calendar" && which != "network") || argc < 4 || argc > 5 ||
      !rio::base::read_number(argv[3], 1, 1u << 30, &third) ||
      (argc > 4 && !rio::base::read_number(argv[4], 1, 1u << 20, &millions))) {
    std::fprintf(stderr,
                 "usage: %s calendar IN_FLIGHT MEAN_NS [MILLIONS]\n"
                 "       %s network TOPOLOGY EACH [MILLIONS]\n",
                 argv[0], argv[0]);
    return 1;
  }
  if (which == "network") {
    return run_network(argv[2], third, millions * 1'000'000);
  }
  uint32_t in_flight = 0;
  if (!rio::base::read_number(argv[2], 1, 100'000'000, &in_flight)) {
    std::fprintf(stderr, "error: '%s' events in flight; give 1 to 100000000\n", argv[2]);
    return 1;
  }
  run_calendar(in_flight, third, millions * 1'000'000);
  return 0;
}
